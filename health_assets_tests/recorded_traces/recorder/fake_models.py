"""A model server on this machine that speaks the dialects of OpenAI, Anthropic and Gemini and follows a script.

The script comes with the prompt (`scripts`), so that one server serves every program and holds no state but a count.
`python -m health_assets_tests.recorded_traces.recorder.fake_models` starts one by itself and says its address.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from health_assets_tests.recorded_traces.recorder.dialects import (
    Dialect,
    Exchange,
    anthropic_messages,
    gemini,
    openai_chat,
    openai_responses,
)
from health_assets_tests.recorded_traces.recorder.scripts import ScriptError, next_turn


def dialect_of(path: str) -> Dialect | None:
    """Find the dialect of a request by the end of its path."""
    path = path.partition("?")[0]
    if path.endswith("/chat/completions"):
        return openai_chat
    if path.endswith("/responses"):
        return openai_responses
    if path.endswith("/messages"):
        return anthropic_messages
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return gemini
    return None


class FakeModels(ThreadingHTTPServer):
    """The server; `problems` holds what was asked of it that no script answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.numbers = count(1)
        self.problems: list[str] = []

    @property
    def url(self) -> str:
        """The address, without a version such as `/v1`."""
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    """Answers one request."""

    server: FakeModels
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer by the script of the request."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        dialect = dialect_of(self.path)
        if dialect is None:
            self._problem(404, f"POST {self.path}: no such dialect")
            return
        body = json.loads(raw)
        try:
            turn = next_turn(dialect.conversation(body))
        except (ScriptError, ValueError) as error:
            self._problem(400, f"POST {self.path}: {error}")
            return
        exchange = Exchange(next(self.server.numbers), dialect.model(self.path, body), turn, body)
        if turn.status != 200:
            self._json(turn.status, dialect.error(turn))
        elif dialect.is_streamed(self.path, body):
            self._stream(dialect, exchange)
        elif turn.is_cut:
            self.close_connection = True
        else:
            self._json(200, dialect.answer(exchange))

    def do_GET(self) -> None:
        """Say that nothing is to be had here by GET."""
        self._problem(404, f"GET {self.path}")

    def _json(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Retry-After-Ms", "1")  # clients that try again need not wait
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, dialect: Dialect, exchange: Exchange) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = list(dialect.events(exchange))
        for event in events[: len(events) // 2] if exchange.turn.is_cut else events:
            content = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        if exchange.turn.is_cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _problem(self, status: int, problem: str) -> None:
        self.server.problems.append(problem)
        self._json(status, {"error": {"message": problem}})

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: what matters is in the recordings."""


@contextmanager
def fake_models() -> Iterator[FakeModels]:
    """Run a server in a thread as long as the block lasts."""
    with FakeModels() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    with FakeModels() as alone:
        sys.stdout.write(f"{alone.url}\n")
        sys.stdout.flush()
        alone.serve_forever()

"""A program that sends traces to a collector and tries again until each request is acknowledged.

`python -m health_assets_tests.soak.sender URL JOURNAL` sends until SIGTERM, then notes in JOURNAL how many executions of
which hours were acknowledged.
"""

import argparse
import json
import signal
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

import httpx

from health_assets_tests.support.collectors import request_of, send_until_taken
from health_assets_tests.support.traces_made import Span, agent, chat, tool

SENT_AGENTS = tuple(f"soak-sent-{number}" for number in range(4))
TURN_S = 0.5
TIMEOUT_S = 30.0
TRY_AGAIN_S = 0.2
FAILED = {"code": 2, "message": "it timed out"}


class Sender:
    """Sends a trace a turn; some are about earlier hours, and some of the runs fail.

    Args:
        url: the collector.
        seed: makes the same traces of it, but for their times.
    """

    def __init__(self, url: str, seed: int) -> None:
        self._url, self._random = url, Random(seed)
        self._numbers, self._client = count(1), httpx.Client(timeout=TIMEOUT_S)
        self.executions: Counter[str] = Counter()
        """Acknowledged executions by the hour in which they ended."""
        self.tries = 0

    def send(self, now: datetime) -> None:
        """Send one trace until it is acknowledged.

        Raises:
            AssertionError: the collector refused it for good, or did not take it in two minutes.
        """
        is_late = self._random.random() < 0.05
        ended_at = now - timedelta(hours=self._random.randrange(1, 6) if is_late else 0)
        body = request_of(*self._trace(next(self._numbers), ended_at))
        self.tries += send_until_taken(self._client, self._url, body, TRY_AGAIN_S)
        self.executions[f"{ended_at:%Y-%m-%dT%H}"] += 1

    def _trace(self, number: int, ended_at: datetime) -> list[Span]:
        status = FAILED if self._random.random() < 0.1 else {}
        name = self._random.choice(SENT_AGENTS)
        return [
            agent(number, 1, ended_at, gen_ai__agent__name=name, status=status),
            chat(number, 2, ended_at - timedelta(seconds=3), 1, gen_ai__usage__input_tokens=900),
            tool(number, 3, ended_at - timedelta(seconds=1), 1, status=status),
        ]


def main() -> None:
    """Send until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    sender = Sender(chosen.url, chosen.seed)
    while not is_over.wait(TURN_S):
        sender.send(datetime.now(UTC))
    journal = {"tries": sender.tries, "executions": sender.executions}
    chosen.journal.write_text(json.dumps(journal), encoding="utf-8")


if __name__ == "__main__":
    main()

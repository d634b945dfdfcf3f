"""The client of the safety judge's endpoint: what it sends besides the request, and how much of an answer it reads.

What does not belong here: what is asked, and what an answer says (`judge_verdict`).
"""

from collections.abc import Iterator
from typing import Any

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings

try:
    import httpx2
    import openai
except ImportError as error:
    raise HealthAssetsError("the judge needs its client; install health-assets[judge]") from error

MOST_RETRIES = 2
"""How often the client repeats a request that fails, waiting longer each time or as long as the server says."""
MOST_ANSWER_BYTES = 4 << 20
"""Most bytes of one answer that are read; a verdict has some hundred."""


class UnfitAnswerError(Exception):
    """An answer that is not read, and why: it is too large, or packed, so that nobody knows how large it is."""


def client_of(url: str, settings: Settings) -> openai.OpenAI:
    """A client that sends no key but the one of the settings, and reads no answer to an end that may not come.

    Args:
        url: the endpoint.
        settings: its key, where it wants one, and how long to wait.
    """
    key = settings.judge_key.get_secret_value() if settings.judge_key else "none"
    nothing_of_the_environment: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    return openai.OpenAI(
        base_url=url,
        api_key=key,
        timeout=settings.judge_timeout_s,
        max_retries=MOST_RETRIES,
        default_headers={"Accept-Encoding": "identity", **nothing_of_the_environment},
        http_client=openai.DefaultHttpxClient(event_hooks={"response": [_limit]}),
    )


def _limit(response: httpx2.Response) -> None:
    """Let no more of an answer be read than the limit; called before its body is."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise UnfitAnswerError("packed answer")
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _Limited(response.stream)


class _Limited(httpx2.SyncByteStream):
    """The bytes of an answer, as far as the limit."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        read = 0
        for chunk in self._stream:
            read += len(chunk)
            if read > MOST_ANSWER_BYTES:
                raise UnfitAnswerError("answer too large")
            yield chunk

    def close(self) -> None:
        """Close the connection's stream."""
        self._stream.close()

"""Answers as bytes: entity tags, conditional requests, problems (RFC 9110, RFC 9457)."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus
from typing import Any

Headers = list[tuple[bytes, bytes]]
"""Names in lower case and values, as ASGI has them."""

JSON = b"application/json"
PROBLEM = b"application/problem+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; the body of a HEAD request is left out when it is sent."""

    status: int
    headers: Headers
    body: bytes


def problem(status: int, detail: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> Answer:
    """An error as RFC 9457 has it; nobody keeps it."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Answer(status, _headers(dumps(body), PROBLEM, [(b"cache-control", b"no-store"), *headers]), dumps(body))


def short(body: Any) -> Answer:
    """An answer of this moment in JSON, which nobody keeps."""
    return momentary(dumps(body), JSON)


def momentary(body: bytes, content_type: bytes) -> Answer:
    """An answer of this moment, which nobody keeps."""
    return Answer(200, _headers(body, content_type, [(b"cache-control", b"no-store")]), body)


def dumps(value: Any) -> bytes:
    """JSON as it is sent: compact, UTF-8, no NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def answer(
    request: Headers,
    body: bytes,
    *,
    last_modified: datetime,
    cache: bytes,
    content_type: bytes = JSON,
) -> Answer:
    """A body, or 304 for those who have it.

    Args:
        request: headers of the request.
        body: the bytes to send.
        last_modified: when the body was last other than it is, at most.
        cache: value of Cache-Control.
        content_type: media type of the body.
    """
    etag = b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
    unchanged = not_modified(etag, last_modified=last_modified, cache=cache)
    if is_not_modified(request, etag, last_modified):
        return unchanged
    return Answer(200, _headers(body, content_type, unchanged.headers), body)


def not_modified(etag: bytes, *, last_modified: datetime, cache: bytes) -> Answer:
    """The answer to a client that has the body already; arguments as of `answer`."""
    validators = [(b"etag", etag), (b"last-modified", _http_date(last_modified)), (b"cache-control", cache)]
    return Answer(304, validators, b"")


def is_not_modified(request: Headers, etag: bytes, last_modified: datetime) -> bool:
    """Whether the client has this already (RFC 9110, 13.1.2 and 13.1.3): by tag, or where it names none, by time."""
    tags = [value for name, value in request if name == b"if-none-match"]
    if tags:
        named = [tag.strip().removeprefix(b"W/") for tag in b",".join(tags).split(b",")]
        return etag in named or b"*" in named
    times = [value for name, value in request if name == b"if-modified-since"]
    if len(times) != 1:
        return False
    try:
        since = parsedate_to_datetime(times[0].decode("latin-1"))
    except (ValueError, OverflowError):  # a zone or a day beyond all clocks overflows
        return False
    return since.tzinfo is not None and last_modified.replace(microsecond=0) <= since


def _headers(body: bytes, content_type: bytes, more: Headers) -> Headers:
    return [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *more,
    ]


def _http_date(moment: datetime) -> bytes:
    return format_datetime(moment, usegmt=True).encode()

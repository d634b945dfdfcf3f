"""Forms of the pages as HTTP brings them: which addresses take them, what one must be, and reading it.

What belongs here: all that is checked of a POST before anybody looks into it. What does not: who may change what
(`pages.changing`).

A form is small, comes from a page of this very server, and comes soon. Everything else that has a body is refused.
"""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope

from health_assets.apps.serving.answers import Answer, Headers, problem
from health_assets.apps.serving.hosts import AllowedHosts

SIGN_IN, SIGN_OUT = "/ui/sign-in", "/ui/sign-out"
SILENCES, END_SILENCE = "/ui/silences", "/ui/silences/end"
FORM_ADDRESSES = frozenset(address.encode() for address in (SIGN_IN, SIGN_OUT, SILENCES, END_SILENCE))
FORM_TYPE = b"application/x-www-form-urlencoded"
MOST_FORM_BYTES = 16 * 1024
MOST_FIELDS = 100
FORM_TIMEOUT_S = 10.0
"""How long the whole of a form may take to arrive, as a head may."""
FORM = "health_assets.form"
"""Where the routes find the form, in the scope."""
CLOSES = (b"connection", b"close")


@dataclass(frozen=True)
class Form:
    """The fields of a form that was sent: by name, every value given, in order."""

    fields: dict[str, list[str]] = field(default_factory=dict)

    def one(self, name: str) -> str:
        """The first value of a field; the empty text where there is none."""
        return self.fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self.fields.get(name, [])


def is_form_address(scope: Scope) -> bool:
    """Whether a request is for an address that takes forms."""
    return scope["method"] == "POST" and scope["raw_path"] in FORM_ADDRESSES


def is_tls(scope: Scope) -> bool:
    """Whether the browser that sends a form speaks TLS, be it with a proxy."""
    return scope["scheme"] == "https" or any(
        name == b"origin" and value.startswith(b"https://") for name, value in scope["headers"]
    )


def form_refusal(scope: Scope, hosts: AllowedHosts) -> Answer | None:
    """The reason why a POST to such an address is not read; None if it is."""
    headers: Headers = scope["headers"]
    if not hosts.is_same_origin(headers, scope["scheme"]):
        return problem(403, "a form is taken from a page of this server alone", [CLOSES])
    return body_refusal(headers, "form", FORM_TYPE, MOST_FORM_BYTES)


def body_refusal(headers: Headers, what: str, media_type: bytes, most_bytes: int) -> Answer | None:
    """The reason why a body is not read, by what the headers say of it; None if it is; `what` names it in words."""
    lengths = [value for name, value in headers if name == b"content-length"]
    if len(lengths) != 1 or any(name == b"transfer-encoding" for name, _ in headers):
        return problem(411, f"a {what} must say how long it is", [CLOSES])
    if not lengths[0].isdigit() or len(lengths[0]) > 9 or int(lengths[0]) > most_bytes:
        return problem(413, f"a {what} has at most {most_bytes:,} bytes", [CLOSES])
    kinds = [value.partition(b";")[0].strip().lower() for name, value in headers if name == b"content-type"]
    if kinds != [media_type] or any(name == b"content-encoding" for name, _ in headers):
        return problem(415, f"a {what} is sent as {media_type.decode()}", [CLOSES])
    return None


async def read_form(receive: Receive) -> Form | Answer | None:
    """The form, why it cannot be read, or None where the client went away."""
    body = await read_body(receive, "form")
    return parsed(body) if isinstance(body, bytes) else body


async def read_body(receive: Receive, what: str) -> bytes | Answer | None:
    """The body of a request, why it cannot be read, or None where the client went away; `what` names it in words."""
    body = b""
    try:
        async with asyncio.timeout(FORM_TIMEOUT_S):
            is_more = True
            while is_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                is_more = message.get("more_body", False)
    except TimeoutError:
        return problem(408, f"the {what} took too long to arrive", [CLOSES])
    return body


def parsed(body: bytes) -> Form | Answer:
    """The form, or why it is none."""
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, encoding="utf-8", errors="strict")
    except ValueError:  # of which one that is not Unicode is a kind
        return problem(400, f"the form is not urlencoded UTF-8 of at most {MOST_FIELDS} fields", [CLOSES])
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return Form(fields)

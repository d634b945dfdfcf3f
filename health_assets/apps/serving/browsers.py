"""Leads a browser that opens an address of the API to the page of the same thing.

What belongs here: which address has which page, and telling a browser from a program by its Accept header. Health
documents and their signatures have no page: they are the same for everybody.
"""

from health_assets.apps.serving.answers import Answer, Headers
from health_assets.core.signature_names import SUFFIX

PAGES = {b"/agents": b"/", b"/models": b"/ui/models", b"/tools": b"/ui/tools", b"/usage": b"/ui/usage"}
PAGES_BELOW = {b"/agents/": b"/ui/agents/", b"/sessions/": b"/ui/sessions/"}
DOCUMENT = b"/.well-known/agent-health"
SIGNATURE = DOCUMENT + SUFFIX.encode()
HTML = b"text/html"
VARY = (b"vary", b"accept")


def has_page(path: bytes) -> bool:
    """Whether an address of the API has a page."""
    return _page(path) is not None


def page_for(path: bytes, headers: Headers) -> Answer | None:
    """The redirect to the page of an address of the API; None for a program, and where there is no page.

    Args:
        path: path of the request, percent-encoded as it came.
        headers: headers of the request.
    """
    page = _page(path)
    if page is None or not _prefers_html(headers):
        return None
    return Answer(303, [(b"location", page), (b"content-length", b"0"), (b"cache-control", b"no-store"), VARY], b"")


def _page(path: bytes) -> bytes | None:
    if path in PAGES:
        return PAGES[path]
    if path.endswith((DOCUMENT, SIGNATURE)):
        return None
    for prefix, page in PAGES_BELOW.items():
        if path.startswith(prefix) and len(path) > len(prefix):
            return page + path[len(prefix) :]
    return None


def _prefers_html(headers: Headers) -> bool:
    """Whether `text/html` is accepted by name, and JSON is not liked as much (RFC 9110, 12.5.1)."""
    weights: dict[bytes, float] = {}
    for name, value in headers:
        if name == b"accept":
            weights |= dict(_range(part) for part in value.lower().split(b","))
    html = weights.get(HTML, 0.0)
    return html > max(weights.get(kind, 0.0) for kind in (b"application/json", b"application/problem+json"))


def _range(part: bytes) -> tuple[bytes, float]:
    """A media range and its weight; one that cannot be read weighs nothing."""
    kind, *parameters = (one.strip() for one in part.split(b";"))
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return kind, float(value)
            except ValueError:
                return kind, 0.0
    return kind, 1.0

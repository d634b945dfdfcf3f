"""Health documents for browsers on other origins (the Fetch standard's CORS protocol)."""

from collections.abc import Collection

from health_assets.apps.serving.answers import Answer, Headers

ANY = "*"
_PREFLIGHT_S = 86_400


class Cors:
    """The origins whose scripts may read health documents; never with credentials.

    Args:
        origins: like `https://app.example`, or `*` for any; none turns it off.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self.is_on = bool(origins)
        self._is_for_any = ANY in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def headers(self, request: Headers) -> Headers:
        """Headers of an answer to this request."""
        if not self.is_on:
            return []
        exposed = (b"access-control-expose-headers", b"etag, retry-after")
        if self._is_for_any:
            return [(b"access-control-allow-origin", b"*"), exposed]
        origin = next((value for name, value in request if name == b"origin"), b"")
        allowed = [(b"access-control-allow-origin", origin), exposed] if origin in self._origins else []
        return [*allowed, (b"vary", b"origin")]

    def preflight(self, request: Headers) -> Answer:
        """The answer to OPTIONS."""
        headers = [*self.headers(request), (b"allow", b"GET, HEAD, OPTIONS")]  # 204 has no length (RFC 9110, 8.6)
        if any(name == b"access-control-allow-origin" for name, _ in headers):
            headers += [
                (b"access-control-allow-methods", b"GET, HEAD"),
                (b"access-control-allow-headers", b"if-none-match"),
                (b"access-control-max-age", b"%d" % _PREFLIGHT_S),
            ]
        return Answer(204, headers, b"")

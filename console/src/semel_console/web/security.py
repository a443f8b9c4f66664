"""What the console demands of every request, and the headers that bind browsers.

No page runs a script that is not a file of the console, none is shown in a frame of another site,
and no other site can make a browser act here: changes need ``Sec-Fetch-Site: same-origin``, and the
host must be a name of the console's own, or a site could let its own name point here.
"""

from collections.abc import Collection
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TLS_HEADER = ("Strict-Transport-Security", "max-age=31536000")
_READING = frozenset({"GET", "HEAD"})
ADDRESS_MAX_BYTES = 16_384
"""A page repeats its address: with a longer one, it would be larger than pages may be."""


class Refusal(NamedTuple):
    """Why a request is refused."""

    status: int
    sentence: str


class Guard:
    """Refuses requests that no page of the console has made, and sets the headers of answers."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], has_tls: bool) -> None:
        """``hosts``: the names by which browsers reach the console, without ports."""
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._has_tls = has_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                if self._has_tls:
                    headers[_TLS_HEADER[0]] = _TLS_HEADER[1]
            await send(message)

        refused = refusal(str(scope["method"]), Headers(scope=scope), self._hosts)
        refused = refused or refusal_of_address(scope["path"], scope["query_string"])
        if refused is None:
            await self._app(scope, receive, send_with_headers)
        else:
            answer = PlainTextResponse(f"{refused.sentence}\n", status_code=refused.status)
            await answer(scope, receive, send_with_headers)


def refusal(method: str, headers: Headers, hosts: Collection[str]) -> Refusal | None:
    """Return why a request is refused; None: it is not."""
    host = host_name(headers.get("host", ""))
    if not host:
        return Refusal(421, "the request has no Host header, or one without a name")
    if host not in hosts:
        return Refusal(
            421,
            f"the console is not known by the name {host!r}: start it with --host {host}, if"
            " browsers are to reach it by this name",
        )
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    if method not in _READING and site != "same-origin":
        return Refusal(403, "only a page of the console may change anything")
    if site == "cross-site" and mode != "navigate":
        return Refusal(403, "another site may link to the console, and not load parts of it")
    return None


def refusal_of_address(path: str, query: bytes) -> Refusal | None:
    """Return why an address is refused; None: it is not."""
    length = len(path.encode()) + len(query)
    if length <= ADDRESS_MAX_BYTES:
        return None
    return Refusal(414, f"the address has {length:,} bytes, more than {ADDRESS_MAX_BYTES:,}")


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()

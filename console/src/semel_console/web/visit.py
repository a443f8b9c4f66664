"""One request of a browser, as pages see it: parameters, the user's client, and the answer."""

import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from aiosemel import Admin, SemelClient
from aiosemel.errors import IncompleteListError, SaslAuthenticationError, SemelError
from semel_console.options import ConsoleOptions
from semel_console.views.blocks import Missing, Page
from semel_console.views.paging import PAGE_BYTES_MAX, within
from semel_console.web.instances import Instances
from semel_console.web.lag_samples import LagSamples
from semel_console.web.readings import Readings
from semel_console.web.rendering import Frame, render

T = TypeVar("T")

_TEXT_MAX = 2_000
"""The longest parameter, in characters; ids and names are shorter."""
_BLOCKS_BYTES_MAX = (54 << 10, 36 << 10, 18 << 10, 0)
"""What the tables of a page may have, tried one after the other: the rest of a page varies."""
_INT64_DIGITS = 19
_INT64_MAX = (1 << 63) - 1


class BadAddressError(Exception):
    """The address names no page: a parameter is missing or wrong; the message says which."""


class ForbiddenError(Exception):
    """The console does not do that in its mode; the message says why."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request."""

    request: Request
    client: SemelClient
    options: ConsoleOptions
    instances: Instances
    lag_samples: LagSamples
    readings: Readings = field(default_factory=Readings)
    can_sign_out: bool = False
    refusals: list[SaslAuthenticationError] = field(default_factory=list)
    """The refusals of the user's token, while the page was made."""

    @property
    def admin(self) -> Admin:
        """The admin client of the user."""
        return self.client.admin()

    @property
    def operator(self) -> str:
        """The operator's name, for the audit.

        Services see the address of the console; so where other machines reach the console, the name
        says which of them has asked.
        """
        browser = self.request.client
        if not self.options.asks_for_tokens or browser is None:
            return self.options.operator
        return f"{self.options.operator}, for the browser at {browser.host}"

    @property
    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter; raises BadAddressError for one that is too long."""
        value = self.request.query_params.get(name, default)
        if len(value) > _TEXT_MAX:
            raise BadAddressError(f"{name} has {len(value)} characters, more than {_TEXT_MAX}")
        return value

    def needed(self, name: str) -> str:
        """Return a parameter that the page cannot do without; raises BadAddressError."""
        value = self.text(name)
        if not value:
            raise BadAddressError(f"the address names no {name}")
        return value

    def number(self, name: str) -> int | None:
        """Return a whole number, or None if there is none; raises BadAddressError."""
        value = self.text(name)
        if not value:
            return None
        if not (value.isascii() and value.isdecimal() and len(value) <= _INT64_DIGITS):
            raise BadAddressError(f"{name} is {value!r}, and no whole number from 0 on")
        number = int(value)
        if number > _INT64_MAX:
            raise BadAddressError(f"{name} is {value}, more than {_INT64_MAX}")
        return number

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of some words, the first if none is given; raises BadAddressError."""
        value = self.text(name) or choices[0]
        if value not in choices:
            raise BadAddressError(f"{name} is {value!r}, and none of {', '.join(choices)}")
        return value

    async def ask(self, what: str, answer: Awaitable[T]) -> T | Missing:
        """Return an answer of the cluster, or why there is none: the rest of the page goes on."""
        try:
            return await answer
        except SemelError as error:
            return self.explain(what, error)

    async def ask_everyone(
        self, what: str, answer: Awaitable[T]
    ) -> tuple[T | Missing, tuple[Missing, ...]]:
        """Return a list, or the part of the instances that answer, and the missing parts."""
        try:
            return await answer, ()
        except IncompleteListError as error:
            missing = [
                self.explain(f"{what} of {name}", each) for name, each in error.errors.items()
            ]
            return error.partial, tuple(missing)
        except SemelError as error:
            return self.explain(what, error), ()

    def explain(self, what: str, error: SemelError) -> Missing:
        """Return which part of the page is missing, and why."""
        if isinstance(error, SaslAuthenticationError):
            self.refusals.append(error)
        return self.instances.explain(what, error)

    def frame(self) -> Frame:
        """Return what stands around the page."""
        url = self.request.url
        return Frame(
            path=url.path,
            address=f"{url.path}?{url.query}" if url.query else url.path,
            cluster=self.options.bootstrap,
            mode=self.options.mode,
            can_sign_out=self.can_sign_out,
            query=self.request.query_params.get("q", "") if url.path == "/search" else "",
        )

    def show(
        self, page: Page, *, status: int = 200, template: str = "page.html", **values: object
    ) -> Response:
        """Answer with a page that is not too large; ``values`` are more that its template needs."""
        frame = self.frame()
        html = render(template, frame, page=page, **values)
        for bytes_max in _BLOCKS_BYTES_MAX:
            if len(html.encode()) <= PAGE_BYTES_MAX:
                break
            html = render(template, frame, page=within(page, bytes_max), **values)
        return HTMLResponse(html, status_code=status)

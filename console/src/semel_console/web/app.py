"""The application: its routes, and the parts that all pages share."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from aiosemel import Security, SemelClient
from aiosemel.errors import (
    AuthorizationError,
    CorruptMessageError,
    InvalidRequestError,
    SaslAuthenticationError,
    SemelError,
)
from semel_console.options import ConsoleOptions
from semel_console.pages import ACTIONS, PAGES
from semel_console.views.blocks import Notice, Page, Tone
from semel_console.web import sign_in
from semel_console.web.clients import Clients
from semel_console.web.events import Looks
from semel_console.web.instances import Instances
from semel_console.web.lag_samples import LagSamples
from semel_console.web.readings import Readings
from semel_console.web.rendering import STATIC
from semel_console.web.security import Guard
from semel_console.web.visit import BadAddressError, ForbiddenError, Visit

Show = Callable[[Visit], Awaitable[Response]]

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_NOT_FOUND = ("_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")


@dataclass(frozen=True, slots=True)
class Console:
    """The parts that all requests share."""

    options: ConsoleOptions
    clients: Clients
    instances: Instances = field(default_factory=Instances)
    lag_samples: LagSamples = field(default_factory=LagSamples)
    readings: Readings = field(default_factory=Readings)

    async def client_of(self, request: Request) -> SemelClient | None:
        """Return the client of the request's user; None: the user has to sign in."""
        if not self.options.asks_for_tokens:
            return await self.clients.own()
        session_id = sign_in.session_of(request)
        return self.clients.find(session_id) if session_id else None

    async def answer(self, show: Show, request: Request) -> Response:
        """Answer with a page, or with the reason why there is none."""
        client = await self.client_of(request)
        if client is None:
            return RedirectResponse(sign_in.PATH, status_code=303)
        visit = Visit(
            request=request,
            client=client,
            options=self.options,
            instances=self.instances,
            lag_samples=self.lag_samples,
            readings=self.readings,
            can_sign_out=self.options.asks_for_tokens,
        )
        await self.instances.refresh(visit.admin)
        page = await self._page(show, visit)
        if visit.refusals and self.options.asks_for_tokens:
            self.clients.sign_out(sign_in.session_of(request))
            return RedirectResponse(sign_in.PATH_AFTER_REFUSAL, status_code=303)
        return page

    async def _page(self, show: Show, visit: Visit) -> Response:
        """Return a page, or one that says why it cannot be shown."""
        try:
            return await show(visit)
        except ForbiddenError as error:
            return visit.show(_failed("The console does not do that", str(error)), status=403)
        except BadAddressError as error:
            return visit.show(_failed("This address names no page", str(error)), status=400)
        except SemelError as error:
            return self._refused(visit, error)

    def _refused(self, visit: Visit, error: SemelError) -> Response:
        """Answer where the thing that the whole page is about cannot be shown."""
        status = 502
        if isinstance(error, AuthorizationError | SaslAuthenticationError):
            status = 403
        elif error.code.name.endswith(_NOT_FOUND):
            status = 404
        elif isinstance(error, InvalidRequestError) and not isinstance(error, CorruptMessageError):
            status = 400  # The address has a name that no such thing can have.
        missing = visit.explain("This page", error)
        return visit.show(_failed("This page cannot be shown", missing.why), status=status)


def _failed(title: str, why: str) -> Page:
    return Page(
        title=title,
        command="",
        sections=(),
        notices=(Notice(text=why, tone=Tone.BAD),),
    )


def make_app(
    options: ConsoleOptions,
    security_of: Callable[[str | None], Security | None],
    is_ending: Callable[[], bool] = lambda: False,
) -> Starlette:
    """Return the application. ``security_of`` takes a user's token, None for the own credentials.

    It connects to nothing before the first request. Streams end as soon as ``is_ending`` says so.
    """
    clients = Clients(options.bootstrap, security_of)
    console = Console(options, clients)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with clients:
            yield

    async def healthy(_: Request) -> Response:
        """Answer as long as the console runs, whatever the cluster does."""
        return PlainTextResponse("ok\n")

    streams = Looks(is_ending)

    async def looks(request: Request) -> Response:
        """Send the stream of an open page to a signed-in user; refuse others."""
        if await console.client_of(request) is None:
            return Response(status_code=401)
        return streams.stream()

    async def no_page(request: Request, _: Exception) -> Response:
        return await console.answer(_no_page, request)

    pages = [
        Route(path, partial(console.answer, show), methods=["GET"]) for path, show in PAGES.items()
    ]
    actions = [
        Route(path, partial(console.answer, show), methods=["POST"])
        for path, show in ACTIONS.items()
    ]
    return Starlette(
        routes=[
            *pages,
            *actions,
            *sign_in.SignIn(options, clients).routes(),
            Route("/events", looks),
            Route("/health", healthy),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(
                Guard,
                hosts={*_THIS_MACHINE, options.listen.host, *options.hosts},
                has_tls=options.has_tls,
            )
        ],
        exception_handlers={404: no_page},
        lifespan=lifespan,
    )


async def _no_page(visit: Visit) -> Response:
    path = visit.request.url.path
    return visit.show(
        _failed("There is no such page", f"The console has no page {path}."), status=404
    )

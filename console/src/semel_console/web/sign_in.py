"""Sign-in: a user gives a bearer token of the cluster, and the session acts with its rights."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from aiosemel import SemelClient
from aiosemel.errors import SaslAuthenticationError, SemelError
from semel_console.options import ConsoleOptions
from semel_console.web.clients import Clients
from semel_console.web.forms import BadFormError, form_of
from semel_console.web.rendering import Frame, render

PATH = "/sign-in"
PATH_AFTER_REFUSAL = f"{PATH}?refused=yes"
_REFUSED = (
    "The cluster no longer accepts the token of your session: it has expired, or its issuer has"
    " withdrawn the key. Sign in with a newer token."
)
_UNCHECKED = (
    "The cluster checks no tokens at this listener, so the console would act for every user with"
    " the same rights. Give --bootstrap a listener that checks tokens (SASL_SSL), or start the"
    " console without --sign-in."
)


class SignIn:
    """The pages where sessions of users begin and end."""

    def __init__(self, options: ConsoleOptions, clients: Clients) -> None:
        """Keep the clients of sessions in ``clients``."""
        self._options = options
        self._clients = clients

    def routes(self) -> Sequence[Route]:
        """Return the routes of sign-in; none if the console does not ask for tokens."""
        if not self._options.asks_for_tokens:
            return ()
        return (
            Route(PATH, self._show, methods=["GET"]),
            Route(PATH, self._begin, methods=["POST"]),
            Route("/sign-out", self._end, methods=["POST"]),
        )

    async def _show(self, request: Request) -> Response:
        return self._asked(_REFUSED if request.query_params.get("refused") else "")

    def _asked(self, why: str = "", status: int = 200) -> Response:
        options = self._options
        frame = Frame(
            path=PATH,
            address=PATH,
            cluster=options.bootstrap,
            mode=options.mode,
            can_sign_out=False,
        )
        return HTMLResponse(render("sign_in.html", frame, why=why), status_code=status)

    async def _begin(self, request: Request) -> Response:
        try:
            token = (await form_of(request)).get("token", "").strip()
        except BadFormError as error:
            return self._asked(str(error), 400)
        if not token:
            return self._asked("The field of the token is empty.", 400)
        try:
            session_id, client = await self._clients.sign_in(token)
        except SemelError as error:
            return self._asked(error.message, 400)
        refused = await _refusal(client)
        why = f"The cluster refuses this token: {_words(refused)}." if refused else ""
        if not refused and not await self._clients.are_tokens_checked():
            why = _UNCHECKED
        if why:
            self._clients.sign_out(session_id)
            return self._asked(why, 403)
        answer = RedirectResponse("/", status_code=303)
        self._set_cookie(answer, request, session_id)
        return answer

    async def _end(self, request: Request) -> Response:
        self._clients.sign_out(session_of(request))
        answer = RedirectResponse(PATH, status_code=303)
        self._set_cookie(answer, request, "", max_age=0)
        return answer

    def _set_cookie(
        self, answer: Response, request: Request, value: str, *, max_age: int | None = None
    ) -> None:
        answer.set_cookie(
            _cookie_of(request),
            value,
            max_age=max_age,
            httponly=True,
            samesite="strict",
            secure=self._options.has_tls,
        )


def session_of(request: Request) -> str:
    """Return the session that a browser names; empty: none."""
    return request.cookies.get(_cookie_of(request), "")


def _cookie_of(request: Request) -> str:
    """Return the name of the cookie: consoles at several ports of a host share their cookies."""
    _, port = request.scope["server"]
    return f"semel_session_{port}"


def _words(refused: SaslAuthenticationError) -> str:
    """Return the words of the service, without the client's advice for programmers."""
    return refused.details.get("refusal", refused.message)


async def _refusal(client: SemelClient) -> SaslAuthenticationError | None:
    """Return why the cluster refuses a token; None: it does not, or it cannot be asked now."""
    try:
        await client.admin().describe_cluster()
    except SaslAuthenticationError as error:
        return error
    except SemelError:
        return None  # Pages say which rights are missing, or which service is away.
    return None

"""The clients of the console: one for each user, who acts with the user's own rights.

The console has no rights of its own. Without sign-in, it is one user's program, and has the
credentials of the command that started it. With sign-in, each browser session has the token of its
user, and a client that shows this token to the cluster.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiosemel import ClientOptions, Security, SemelClient
from aiosemel.errors import AuthorizationError, SaslAuthenticationError, SemelError

SESSIONS_MAX = 32
REQUEST_TIMEOUT_MS = 1_000
API_TIMEOUT_MS = 1_500
"""A page waits no longer for a service that is away."""

OWN = ""
"""The session of the console's own user, without sign-in."""


@dataclass(slots=True)
class _Session:
    client: SemelClient
    task: asyncio.Task[None]
    end: asyncio.Event = field(default_factory=asyncio.Event)


class Clients:
    """Makes clients, keeps them while they are in use, and closes all of them at the end."""

    def __init__(
        self, bootstrap: str, security_of: Callable[[str | None], Security | None]
    ) -> None:
        """Connect nothing yet. ``security_of`` takes a user's token; None: the own credentials."""
        self._bootstrap = bootstrap
        self._security_of = security_of
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self._sessions.values():
            session.end.set()
        self._sessions.clear()
        await self._group.__aexit__(kind, error, trace)

    async def own(self) -> SemelClient:
        """Return the client with the credentials of the command that started the console."""
        return self.find(OWN) or await self._open(OWN, None)

    def find(self, session_id: str) -> SemelClient | None:
        """Return the client of a session; None: there is no such session (any more)."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        self._sessions.move_to_end(session_id)
        return session.client

    async def sign_in(self, token: str) -> tuple[str, SemelClient]:
        """Begin a session of a user's; raises InvalidConfigError for a token that cannot be sent.

        Of too many sessions, the one that was used least recently ends.
        """
        session_id = secrets.token_urlsafe(32)
        client = await self._open(session_id, token)
        while len(self._sessions) > SESSIONS_MAX:
            self.sign_out(next(iter(self._sessions)))
        return session_id, client

    async def are_tokens_checked(self) -> bool:
        """Whether the cluster refuses a token that no issuer has given out.

        Else a session would have the rights of the console's own certificate, or of no user, and
        not those of its user. Of a cluster that does not answer, the answer is yes: it carries out
        nothing.
        """
        session_id, client = await self.sign_in(secrets.token_urlsafe(32))
        try:
            await client.admin().describe_cluster()
        except SaslAuthenticationError:
            return True
        except AuthorizationError:
            return False
        except SemelError:
            return True
        finally:
            self.sign_out(session_id)
        return False

    def sign_out(self, session_id: str) -> None:
        """End a session; its token is forgotten."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.end.set()

    async def _open(self, session_id: str, token: str | None) -> SemelClient:
        client = SemelClient(
            self._bootstrap,
            options=ClientOptions(
                request_timeout_ms=REQUEST_TIMEOUT_MS, default_api_timeout_ms=API_TIMEOUT_MS
            ),
            security=self._security_of(token),
        )
        is_open, end = asyncio.Event(), asyncio.Event()

        async def live() -> None:
            """Open and close the client in one task: it owns tasks of its own."""
            async with client:
                is_open.set()
                await end.wait()

        task = self._group.create_task(live(), name="client of a session")
        self._sessions[session_id] = _Session(client=client, task=task, end=end)
        await is_open.wait()
        return client

"""The bearer token that a client shows: where it is from, and when it is read again.

A token in a file is read again when the file changes. The file is looked at once in a second; in
the last seconds of the token's life, and after a refusal, at every call. When a token expires says
the token itself, if it is a JSON Web Token: nothing here checks it, that is for servers to do.
"""

import inspect
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from semel_common.errors import NetworkExceptionError, SaslAuthenticationError, SemelError
from semel_common.reloaded_files import Reloaded

TokenSource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Returns the token to show now; asked for each call, so it keeps what is still good."""

TOKEN_MAX_BYTES = 16_384
"""The longest token that a service checks."""
WATCHED_BEFORE_S = 30.0
"""How long before a token expires its file is looked at for every call."""
REFUSAL = "refusal"
"""The detail of a refused token's error that has the words of the service alone."""
_TIME_MAX_S = 253_402_300_799
"""The end of the year 9999, the last moment that has a date."""


class ClientToken:
    """The token of one client."""

    def __init__(self, given: str | Path | TokenSource) -> None:
        """Read the file, if it is one. Raises OSError and ValueError."""
        self._given = given
        self._file = None
        if isinstance(given, Path):
            self._file = Reloaded((given,), lambda: _read(given))

    async def current(self, *, at_once: bool = False) -> str:
        """Return the token to show; ``at_once``: as the file is at this moment.

        Raises NetworkExceptionError when the source fails, and SaslAuthenticationError when the
        token is longer than a service takes.
        """
        token = await self._token(at_once=at_once)
        if len(token) > TOKEN_MAX_BYTES:
            raise SaslAuthenticationError(
                f"{self._where()} has {len(token):,} bytes: services take at most "
                f"{TOKEN_MAX_BYTES:,}; let the issuer put fewer claims (such as groups) into it"
            )
        return token

    async def _token(self, *, at_once: bool) -> str:
        if self._file is not None:
            token = self._file.current(at_once=at_once)
            is_late = seconds_left(token) < WATCHED_BEFORE_S
            return self._file.current(at_once=True) if is_late and not at_once else token
        if isinstance(self._given, str):
            return self._given
        assert not isinstance(self._given, Path), "a path has a file"
        return await _asked(self._given)

    def refused(self, error: SaslAuthenticationError, token: str) -> SaslAuthenticationError:
        """Return a server's refusal with advice for the program of the client.

        The details have the refusal alone, for people who have given the program their token.
        """
        details = {**error.details, REFUSAL: error.message}
        left_s = seconds_left(token)
        if left_s > 0:
            return SaslAuthenticationError(f"{error.message} ({self._where()})", **details)
        expired_at = datetime.fromtimestamp(time.time() + left_s, UTC)
        return SaslAuthenticationError(
            f"{error.message}: {self._where()} expired at {expired_at:%Y-%m-%d %H:%M:%S} UTC, and "
            f"there is no newer one; {self._remedy()}",
            **details,
        )

    def _where(self) -> str:
        if isinstance(self._given, Path):
            return f"the token in {self._given}"
        if isinstance(self._given, str):
            return "the token that this client was given"
        return "the token that the client's token source returned"

    def _remedy(self) -> str:
        if isinstance(self._given, Path):
            return "write a new token to this file before the old one expires"
        if isinstance(self._given, str):
            return "make a new client, or give clients a file or a function instead of a text"
        return "let the source return a new token before the old one expires"


async def _asked(source: TokenSource) -> str:
    try:
        token = source()
        return await token if inspect.isawaitable(token) else token
    except SemelError:
        raise
    except Exception as error:
        raise NetworkExceptionError(
            f"there is no token to show: its source failed with {type(error).__name__}"
        ) from error


def _read(path: Path) -> str:
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ValueError(f"{path} holds no token")
    return token


def seconds_left(token: str) -> float:
    """Return how long a token is good; infinite, if it does not say so in a readable form."""
    return _expires_at(token) - time.time()


@lru_cache(maxsize=64)
def _expires_at(token: str) -> float:
    """Return the claim ``exp``, in seconds since 1970; infinite if there is none."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        at = float(claims["exp"])
    except (LookupError, TypeError, ValueError, RecursionError, OverflowError):
        return float("inf")
    return at if 0 <= at <= _TIME_MAX_S else float("inf")

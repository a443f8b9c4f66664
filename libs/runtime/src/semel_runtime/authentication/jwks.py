"""The keys with which tokens are signed: a JSON Web Key Set, in a file or at a URL.

A set at a URL is asked for again from time to time, and when a token names a key that is not known;
for that at most once in ``UNKNOWN_KEY_PAUSE_S``, for anybody can name keys. While the URL does not
answer, the keys stay as they were. A set without a usable key is an answer: it revokes all keys.
"""

import asyncio
import json
import urllib.error
import urllib.request
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from joserfc.errors import JoseError, MissingKeyError
from joserfc.jwk import KeySet

from semel_common.addresses import is_loopback
from semel_common.errors import BrokerNotAvailableError, InvalidConfigError
from semel_common.reloaded_files import Reloaded

log = structlog.get_logger(__name__)

UNKNOWN_KEY_PAUSE_S = 10.0
"""How long a URL is not asked again for the sake of a key that is not known."""
RETRY_S = 5.0
"""How soon a URL that did not answer is asked again."""
FETCH_TIMEOUT_S = 5.0
SIZE_MAX_BYTES = 1 << 20


class Keys(Protocol):
    """Where keys come from."""

    async def holding(self, key_id: str | None) -> KeySet:
        """Return the keys, as new as it takes to hold this one, if it is anywhere."""
        ...

    async def run(self) -> None:
        """Keep them fresh until cancelled."""
        ...


class KeysInFile:
    """A key set in a file, read again when that changes. Implements ``Keys``."""

    def __init__(self, path: Path) -> None:
        """Read it; raises InvalidConfigError."""
        try:
            self._keys = Reloaded((path,), lambda: _parse(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise InvalidConfigError(f"{path} is no key set: {error}") from error

    async def holding(self, key_id: str | None) -> KeySet:
        """See ``Keys.holding``."""
        keys = self._keys.current()
        return keys if _holds(keys, key_id) else self._keys.current(at_once=True)

    async def run(self) -> None:
        """See ``Keys.run``: it is looked at when it is needed."""


class KeysAtUrl:
    """A key set that is served over HTTP. Implements ``Keys``."""

    def __init__(self, url: str, *, refresh_ms: int) -> None:
        """Do no I/O yet."""
        self._url = url
        self._refresh_s = refresh_ms / 1000
        self._keys: KeySet | None = None
        self._fetching: asyncio.Future[bytes] | None = None
        self._asked_for_unknown: float | None = None
        self._complained = False

    async def holding(self, key_id: str | None) -> KeySet:
        """See ``Keys.holding``; raises BrokerNotAvailableError before the URL has answered."""
        if self._keys is None or not _holds(self._keys, key_id):
            await self._ask_for_unknown()
        if self._keys is None:
            raise BrokerNotAvailableError("the keys that tokens are signed with are not known yet")
        return self._keys

    async def run(self) -> None:
        """See ``Keys.run``."""
        while True:
            await self.refresh()
            await asyncio.sleep(RETRY_S if self._complained else self._refresh_s)

    async def _ask_for_unknown(self) -> None:
        now = asyncio.get_running_loop().time()
        waited = self._asked_for_unknown is None or now >= self._asked_for_unknown
        if self._fetching is None and not waited:
            return
        if self._fetching is None:
            self._asked_for_unknown = now + UNKNOWN_KEY_PAUSE_S
        await self.refresh()

    async def refresh(self) -> None:
        """Ask once, or share the answer of a request under way."""
        if self._fetching is None:
            loop = asyncio.get_running_loop()
            self._fetching = loop.run_in_executor(None, partial(_read, self._url))
            self._fetching.add_done_callback(self._take)
        await asyncio.wait((self._fetching,))

    def _take(self, fetched: "asyncio.Future[bytes]") -> None:
        self._fetching = None
        try:
            self._keys = _parse(fetched.result())
        except (OSError, ValueError) as error:
            told, self._complained = self._complained, True
            if not told:
                log.warning("keys of tokens cannot be read", url=self._url, error=str(error))
        except asyncio.CancelledError:
            return
        else:
            self._complained = False


class _StayHandler(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the settings alone say where keys come from."""

    def redirect_request(self, *_: object) -> None:
        """Treat the redirect as an error."""


def _read(url: str) -> bytes:
    """Ask; raises OSError."""
    direct = is_loopback(urlsplit(url).hostname or "")
    proxies = urllib.request.ProxyHandler({} if direct else None)
    opener = urllib.request.build_opener(_StayHandler, proxies)
    try:
        with opener.open(url, timeout=FETCH_TIMEOUT_S) as answer:
            content: bytes = answer.read(SIZE_MAX_BYTES)
    except urllib.error.HTTPError as error:
        error.close()  # It holds the connection.
        raise
    except HTTPException as error:
        raise OSError(f"{type(error).__name__} instead of an answer") from error
    return content


def _parse(content: bytes) -> KeySet:
    """Read a set; raises ValueError, which quotes nothing: it may hold secrets."""
    try:
        return KeySet.import_key_set(json.loads(content))
    except MissingKeyError:
        return KeySet([])  # It has the form of a set, and no usable key.
    except (JoseError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"not a JSON Web Key Set ({type(error).__name__})") from None


def _holds(keys: KeySet, key_id: str | None) -> bool:
    return key_id is None or any(key.kid == key_id for key in keys)

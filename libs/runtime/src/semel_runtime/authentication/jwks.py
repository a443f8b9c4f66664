"""The keys with which tokens are signed: a JSON Web Key Set, in a file or at a URL.

A set at a URL is asked for again from time to time, and when a token names a key that is not known;
for that at most once in ``UNKNOWN_KEY_PAUSE_S``, for anybody can name keys. While the URL does not
answer, the keys stay as they were. A set without a usable key is an answer: it revokes all keys.
"""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog
from joserfc.errors import JoseError, MissingKeyError
from joserfc.jwk import KeySet

from semel_common.errors import BrokerNotAvailableError, InvalidConfigError
from semel_common.reloaded_files import Reloaded
from semel_runtime.authentication.key_download import download

log = structlog.get_logger(__name__)

UNKNOWN_KEY_PAUSE_S = 10.0
"""How long a URL is not asked again for the sake of a key that is not known."""
RETRY_S = 5.0
"""How soon a URL that did not answer is asked again."""
FETCH_TIMEOUT_S = 5.0
"""How long one request may take, from the first byte of its connection to the last."""


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
            is_known = self._fetching is None and not self._complained
            await asyncio.sleep(self._refresh_s if is_known else RETRY_S)

    async def _ask_for_unknown(self) -> None:
        now = asyncio.get_running_loop().time()
        waited = self._asked_for_unknown is None or now >= self._asked_for_unknown
        if self._fetching is None and not waited:
            return
        if self._fetching is None:
            self._asked_for_unknown = now + UNKNOWN_KEY_PAUSE_S
        await self.refresh()

    async def refresh(self) -> None:
        """Ask once, or share the answer of a request under way; wait no longer than it may take."""
        if self._fetching is None:
            loop = asyncio.get_running_loop()
            read = partial(download, self._url, timeout_s=FETCH_TIMEOUT_S)
            self._fetching = loop.run_in_executor(None, read)
            self._fetching.add_done_callback(self._take)
        await asyncio.wait((self._fetching,), timeout=FETCH_TIMEOUT_S)

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

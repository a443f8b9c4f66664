"""The tokens that streams were opened with: a stream is left before its token expires.

A stream shows its token once, when it is opened, and its server ends it when that token expires. So
the connection looks for a newer token in time, and opens the next stream with it; calls that are
under way end on the stream before it.
"""

import asyncio
from dataclasses import dataclass
from typing import TypeAlias

from semel_common.errors import NetworkExceptionError
from semel_common.library_log import get_logger
from semel_common.wire.client_security import ClientCredentials, Metadata

_log = get_logger(__name__)

LOOK_BEFORE_S = 30.0
"""How long before a token expires its stream looks for a newer one; at most half of its life."""
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.05, 1.0
"""The pause between two looks: a tenth of the remaining life."""

StreamKey: TypeAlias = tuple[str, str]
"""The service of a stream, and the cluster that its calls name."""


@dataclass(slots=True)
class _Shown:
    metadata: Metadata
    look_at: float
    """In event-loop time, seconds; infinite: never, because the token does not say its end."""


class StreamTokens:
    """What the streams of one connection have shown."""

    def __init__(self, credentials: ClientCredentials) -> None:
        """Know of no stream."""
        self._credentials = credentials
        self._shown: dict[StreamKey, _Shown] = {}

    def opened(self, key: StreamKey, metadata: Metadata) -> None:
        """Note what a stream shows."""
        left_s = self._credentials.seconds_left(metadata)
        self._shown[key] = _Shown(metadata, _now() + max(left_s - LOOK_BEFORE_S, left_s / 2))

    def is_due(self, key: StreamKey) -> bool:
        """Whether to look for a newer token than that of a stream."""
        shown = self._shown.get(key)
        return shown is not None and _now() >= shown.look_at

    async def is_replaced(self, key: StreamKey) -> bool:
        """Look for a newer token; true once for each stream that is to be left."""
        shown = self._shown[key]
        pause_s = self._credentials.seconds_left(shown.metadata) / 10
        shown.look_at = _now() + min(max(pause_s, _PAUSE_MIN_S), _PAUSE_MAX_S)
        try:
            newer = await self._credentials.metadata(at_once=True)
        except NetworkExceptionError as error:  # The token of the stream is still good.
            _log.debug("no newer token: %s", error)
            return False
        if newer == shown.metadata or self._shown.get(key) is not shown:
            return False
        del self._shown[key]
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()

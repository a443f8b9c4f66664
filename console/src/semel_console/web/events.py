"""The stream that tells open pages when to look again. A hidden page has none."""

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse

INTERVAL_S = 2.0
_STEP_S = 0.25
"""How late a stream may notice that the server ends."""
STREAMS_MAX = 64


class Looks:
    """Sends each open page the word to look again, at the same pace for all."""

    def __init__(self, is_ending: Callable[[], bool]) -> None:
        """``is_ending``: whether the server waits for the end of all streams."""
        self._is_ending = is_ending
        self._open = 0

    def stream(self) -> Response:
        """Answer with the stream of one page; a page above the limit is not kept up to date."""
        if self._open >= STREAMS_MAX:
            return Response(status_code=204)  # The browser then asks no more.
        return StreamingResponse(self._looks(), media_type="text/event-stream")

    async def _looks(self) -> AsyncIterator[str]:
        self._open += 1
        try:
            yield "retry: 2000\n\n"
            while await self._interval_passes():
                yield "event: look\ndata:\n\n"
        finally:
            self._open -= 1

    async def _interval_passes(self) -> bool:
        """Wait for the next look; False: the server ends."""
        for _ in range(round(INTERVAL_S / _STEP_S)):
            if self._is_ending():
                return False
            await asyncio.sleep(_STEP_S)
        return True

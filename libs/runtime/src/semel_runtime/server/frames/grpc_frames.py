"""Frames over a Stream RPC, as its server sees it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias

import grpc
import structlog

from semel_common.errors import NetworkExceptionError
from semel_common.wire.frames.pipe import Pipe
from semel_runtime.server.frames.frame_session import FrameSession

log = structlog.get_logger(__name__)

StreamContext: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class GrpcServerPipe:
    """One call of a Stream RPC. Implements ``Pipe``."""

    def __init__(self) -> None:
        """Carry nothing before ``serve``."""
        self._readable = asyncio.Event()
        self._readable.set()
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()
        self._closed = asyncio.Event()

    def write(self, parts: Sequence[bytes]) -> bool:
        """See ``Pipe.write``."""
        self._messages.put_nowait(b"".join(parts))
        return False

    def pause_reading(self) -> None:
        """See ``Pipe.pause_reading``."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """See ``Pipe.resume_reading``."""
        self._readable.set()

    def close(self) -> None:
        """See ``Pipe.close``. All was written: answers count as in flight until they are."""
        self._closed.set()

    def abort(self) -> None:
        """See ``Pipe.abort``."""
        self._closed.set()

    async def serve(
        self,
        requests: AsyncIterator[bytes],
        context: StreamContext,
        session_on: Callable[[Pipe], FrameSession],
    ) -> None:
        """Carry the frames of a session until it closes the pipe, or the client vanishes."""
        session = session_on(self)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = (
                    group.create_task(self._read(requests, session), name="frame reader"),
                    group.create_task(self._write(context, session), name="frame writer"),
                )
                await self._closed.wait()
                for task in tasks:
                    task.cancel()
        except* grpc.aio.InternalError as errors:
            log.debug("client vanished", error=str(errors.exceptions[0]))
        finally:
            session.lost(NetworkExceptionError("the client ended the stream"))
        # From Python 3.13 on, a group that fails in a cancelled task cancels the task again. This
        # cancellation must arrive inside the call: gRPC logs a later one as an error.
        await asyncio.sleep(0)

    async def _read(self, requests: AsyncIterator[bytes], session: FrameSession) -> None:
        async for message in requests:
            await self._readable.wait()  # Answers may have been made while this one came.
            session.received(message)
        session.finished()  # Half-closed or gone, the client gets the pending answers.

    async def _write(self, context: StreamContext, session: FrameSession) -> None:
        while True:
            await context.write(await self._messages.get())
            session.written()

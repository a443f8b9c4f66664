"""Messages over a gRPC stream, as its client sees it."""

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import grpc

from semel_common.errors import NetworkExceptionError, SemelError
from semel_common.wire import status
from semel_common.wire.frames.pipe import PipeUser

StreamCall: TypeAlias = "grpc.aio.StreamStreamCall[bytes, bytes]"


class GrpcPipe:
    """One call of a Stream RPC. Implements ``Pipe``. Made inside a running event loop."""

    def __init__(self, call: StreamCall, user: PipeUser, address: str) -> None:
        """Take over an opened call."""
        self._call = call
        self._user = user
        self._address = address
        self._readable = asyncio.Event()
        self._readable.set()
        self._messages: asyncio.Queue[bytes] = asyncio.Queue()
        self._task = asyncio.create_task(self._run(), name=f"frame stream {address}")

    def write(self, parts: Sequence[bytes]) -> bool:
        """Send one message; see ``Pipe.write``."""
        self._messages.put_nowait(b"".join(parts))
        return False

    def pause_reading(self) -> None:
        """See ``Pipe.pause_reading``."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """See ``Pipe.resume_reading``."""
        self._readable.set()

    def close(self) -> None:
        """See ``Pipe.close``."""
        self._task.cancel()

    def abort(self) -> None:
        """See ``Pipe.abort``."""
        self._task.cancel()

    async def _run(self) -> None:
        writer = asyncio.create_task(self._write(), name=f"frame writer {self._address}")
        error: SemelError = NetworkExceptionError(f"{self._address} ended the stream")
        try:
            async for message in self._call:
                self._user.received(message)
                await self._readable.wait()
        except grpc.aio.AioRpcError as failed:
            error = status.from_rpc_error(failed, self._address)
        except grpc.aio.BaseError as failed:
            error = status.from_library_error(failed, self._address)
        except asyncio.CancelledError:
            # Either ours, by close, or grpc's, which raises it from a call that was cancelled.
            error = NetworkExceptionError(f"connection to {self._address} was closed")
        finally:
            self._call.cancel()
            writer.cancel()
            self._user.lost(error)

    async def _write(self) -> None:
        while True:
            message = await self._messages.get()
            try:
                await self._call.write(message)
            except (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError):
                return  # The call is over; the reader learns why.
            self._user.written()

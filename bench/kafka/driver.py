"""A client's process, as the harness sees it: orders in, samples out."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Self

from bench.clients.messages import BEGAN, Order, read_sample, write_order
from bench.workloads import Sample

_TIMEOUT_S = 120.0
"""How long one run may take; some take ten seconds."""
_LINE_MAX_BYTES = 16 << 20
"""A sample has a latency of each transaction."""


class ClientFailedError(Exception):
    """A client has ended, or did not answer in time."""


class Driver:
    """A client's process; it is started again after it has failed."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name = name
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    @property
    def pid(self) -> int:
        """Of the process that is there now."""
        assert self._process is not None
        return self._process.pid

    async def run(self, order: Order, began: Callable[[], None]) -> Sample:
        """Have one task done; ``began`` is called when its clock starts.

        Raises ClientFailedError; then another process is there.
        """
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._run(order, began)
        except (TimeoutError, ConnectionError, ClientFailedError) as error:
            await self._stop()
            await self._start()
            why = str(error) or f"no answer after {_TIMEOUT_S:.0f} s"
            raise ClientFailedError(f"{self._name}, {order.task.name}: {why}") from error

    async def _run(self, order: Order, began: Callable[[], None]) -> Sample:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{write_order(order)}\n".encode())
        await self._process.stdin.drain()
        line = await self._answer()
        if line == BEGAN:
            began()
            line = await self._answer()
        return read_sample(line)

    async def _answer(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise ClientFailedError(f"ended with status {await self._process.wait()}: see above")
        return line.decode().strip()

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_MAX_BYTES,
        )

    async def _stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

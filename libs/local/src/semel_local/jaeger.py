"""Jaeger on this machine, to look at traces: all-in-one, whose traces are in memory only."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from semel_local.errors import ServiceFailedError
from semel_local.layout import HOST
from semel_local.ports import is_free, port_range
from semel_local.process import ManagedProcess

PROGRAMS = ("jaeger-all-in-one", "all-in-one")
"""What version 1 calls it, and what Go's own build does."""
LOG_FILE = "semel.jaeger.log"
"""Its log in the folder of a cluster: a folder with such files alone takes a new cluster."""
START_TIMEOUT_S = 30.0
STOP_GRACE_S = 5.0
_PAUSE_S = 0.1
_OTHERS = (
    "admin.http",
    "collector.grpc-server",
    "collector.http-server",
    "collector.otlp.http",
    "query.grpc-server",
)
"""Servers of Jaeger that stay unused here."""


def find_jaeger() -> Path | None:
    """Return the program, if it is on the PATH."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    return None if found is None else Path(found)


class Jaeger:
    """A process of Jaeger, on free ports of the loopback interface; `async with` runs it."""

    def __init__(self, program: Path, log_path: Path, *, ui_port: int = 0) -> None:
        """Do no I/O yet, but choose the ports; ``ui_port`` 0 is any that is free."""
        free = filter(is_free, port_range())
        self._otlp_port = next(free)
        self._ui_port = ui_port or next(free)
        self._process = ManagedProcess("jaeger", self._command(program, free), log_path)

    @property
    def otlp(self) -> str:
        """Where spans are sent."""
        return f"http://{HOST}:{self._otlp_port}"

    @property
    def ui(self) -> str:
        """What to open in a browser, and where the query API is."""
        return f"http://{HOST}:{self._ui_port}"

    async def __aenter__(self) -> Self:
        """Start it; returns when it takes spans. Raises ServiceFailedError."""
        await self._process.spawn()
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                for port in (self._otlp_port, self._ui_port):
                    await self._wait_for(port)
        except BaseException as error:
            await self._process.kill()
            if isinstance(error, TimeoutError):
                raise ServiceFailedError(
                    f"jaeger was not ready after {START_TIMEOUT_S:g} s: {self._process.log_path}"
                ) from None
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it; its traces are gone."""
        await self._process.stop(grace_s=STOP_GRACE_S)

    async def _wait_for(self, port: int) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                if not self._process.running:
                    ended = self._process.ended(await self._process.wait())
                    raise ServiceFailedError(str(ended)) from None
                await asyncio.sleep(_PAUSE_S)
            else:
                writer.close()
                return

    def _command(self, program: Path, free: Iterator[int]) -> tuple[str, ...]:
        """Name every port that it would take, so that several may run, on loopback only."""
        others = (
            f"--{name}.host-port={HOST}:{port}" for name, port in zip(_OTHERS, free, strict=False)
        )
        return (
            str(program),
            "--memory.max-traces=20000",
            f"--collector.otlp.grpc.host-port={HOST}:{self._otlp_port}",
            f"--query.http-server.host-port={HOST}:{self._ui_port}",
            *others,
        )

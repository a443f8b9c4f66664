"""The console that `semel up` starts beside its cluster: a process of its own."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from semel_console.mode import DEFAULT_PORT
from semel_local.ports import HOST, free_port, is_free, port_range
from semel_local.process import Ended, ManagedProcess

STOP_GRACE_S = 5.0


class UpConsole:
    """A console of one cluster; `async with` runs it."""

    def __init__(
        self,
        bootstrap: str,
        log_path: Path,
        *,
        environment: Mapping[str, str],
        jaeger: str,
        on_ended: Callable[[Ended], None],
    ) -> None:
        """Choose a port: the usual one, or any that is free. Raises NoPortFreeError.

        ``environment`` says how to connect; ``on_ended`` hears of an unexpected end.
        """
        port = DEFAULT_PORT if is_free(DEFAULT_PORT) else free_port(port_range())
        self.url = f"http://{HOST}:{port}/"
        self._on_ended = on_ended
        self._watch = asyncio.TaskGroup()
        command = (
            *(sys.executable, "-m", "semel_cli", "console", "--ends-with-parent"),
            *("--bootstrap", bootstrap, "--listen", f"{HOST}:{port}"),
            *(("--jaeger", jaeger) if jaeger else ()),
        )
        self._process = ManagedProcess("console", command, log_path, environment=environment)

    async def __aenter__(self) -> Self:
        """Start it; it takes about a second until it answers."""
        await self._watch.__aenter__()
        await self._process.spawn()
        self._watch.create_task(self._report(), name="end of the console")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop it."""
        await self._process.stop(grace_s=STOP_GRACE_S)
        await self._watch.__aexit__(None, None, None)

    async def _report(self) -> None:
        if ended := await self._process.wait_unexpected():
            self._on_ended(ended)

"""Runs commands as processes of their own, as users start them."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

SEMEL = (sys.executable, "-c", "from semel_cli.main import main; main()")
DEADLINE_S = 40


@dataclass(frozen=True, slots=True)
class Up:
    """A running command with its output."""

    process: asyncio.subprocess.Process
    said: list[str]

    async def until(self, text: str) -> str:
        """Read what it says until it says this; returns the line."""
        assert self.process.stderr is not None
        async with asyncio.timeout(DEADLINE_S):
            while line := (await self.process.stderr.readline()).decode():
                self.said.append(line)
                if text in line:
                    return line
        raise AssertionError(f"ended without saying {text!r}: {self.said}")

    async def ends(self) -> int:
        """Wait for its end; returns the exit status."""
        async with asyncio.timeout(DEADLINE_S):
            _, rest = await self.process.communicate()
        self.said.append(rest.decode())
        return self.process.returncode or 0


@asynccontextmanager
async def command(*arguments: str) -> AsyncIterator[Up]:
    """Run a command of its own; interrupted at the end, if it still runs."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *SEMEL, *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        yield Up(process, [])
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await process.communicate()

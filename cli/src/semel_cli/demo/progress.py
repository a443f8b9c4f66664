"""The progress of a job: follows the log of its income, and wakes the tasks that wait for it."""

import asyncio

from semel_cli.demo.log_reader import LogReader
from semel_cli.demo.tally import Tally

STALL_S = 40.0
"""Past this time without a line of income, something is wrong."""


class JobError(Exception):
    """The job does not go on; the message is for its user."""


class IncomeProgress:
    """The tally of a topic of income, as it grows."""

    def __init__(self, reader: LogReader) -> None:
        """Start with nothing; ``follow`` fills it."""
        self.tally = Tally()
        self._reader = reader
        self._moved = asyncio.Event()

    async def follow(self) -> None:
        """Take all that is written, until cancelled."""
        async for batches in self._reader.batches():
            for partition, batch in batches:
                self.tally.take(partition, batch)
            if batches:
                self._moved.set()
                self._moved = asyncio.Event()

    async def reached(self, lines: int) -> None:
        """Wait until so many lines are visible. Raises JobError when it stops before."""
        while self.tally.visible.lines < lines:
            await self._move(f"{lines} lines of income")

    async def caught_up(self, ends: dict[int, int]) -> None:
        """Wait until the logs are read up to these offsets, by partition. Raises JobError."""
        while any(self._reader.offset(partition) < end for partition, end in ends.items()):
            await self._move("the end of the logs")

    async def _move(self, awaited: str) -> None:
        try:
            async with asyncio.timeout(STALL_S):
                await self._moved.wait()
        except TimeoutError:
            raise JobError(
                f"nothing was written for {STALL_S:g} s, while waiting for {awaited}: there are"
                f" {self.tally.visible.lines} lines"
            ) from None

"""Waiting until a job has come to its end: every order consumed, and no transaction open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from semel_cli.demo.progress import JobError
from semel_cli.demo.topics import PARTITIONS, Job
from semel_console.insight.offset_views import group_offsets, watermarks

if TYPE_CHECKING:
    from aiosemel import SemelClient

_END_TIMEOUT_S = 40.0
_POLL_S = 0.1


async def all_consumed(client: "SemelClient", job: Job) -> None:
    """Wait until the group has consumed every order. Raises JobError."""
    async with _deadline(f"group {job.group} has not consumed all orders"):
        while True:
            offsets = await group_offsets(client, job.group)
            if len(offsets) == PARTITIONS and not any(offset.lag for offset in offsets):
                return
            await asyncio.sleep(_POLL_S)


async def settled_ends(client: "SemelClient", job: Job) -> dict[int, int]:
    """Return where the income ends in each partition, when no transaction is open any more.

    Raises JobError.
    """
    partitions = [(job.income, number) for number in range(PARTITIONS)]
    async with _deadline(f"transactions in {job.income} stay open"):
        while True:
            marks = await watermarks(client, partitions)
            if all(mark.stable_end == mark.end for mark in marks):
                return {number: each.end for number, each in enumerate(marks)}
            await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def _deadline(complaint: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_END_TIMEOUT_S):
            yield
    except TimeoutError:
        raise JobError(f"{complaint} after {_END_TIMEOUT_S:g} s") from None

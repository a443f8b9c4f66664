"""Records in a coordinator's journal when it starts: a killed process is away as long."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import structlog

from bench.growth.coordinator import call, coordinator
from bench.growth.curve import Curve, Point, Reading
from bench.growth.probe import CPU_US
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire import methods
from semel_coordinator.app import CoordinatorApp

RECORDS_OF_ID = 10
"""Its own, and those of empty transactions."""
AT_ONCE = 2_000


async def journal(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Fill a journal with transactions of many ids, then open it again; all in this process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    for size in sizes:
        its_folder = folder / f"{size:g}"
        its_folder.mkdir()
        async with coordinator(its_folder) as app:
            await _fill(app, int(size) // RECORDS_OF_ID)
        started, cpu_s = time.perf_counter(), time.process_time()
        async with coordinator(its_folder):
            took_ms = (time.perf_counter() - started) * 1_000
            used_us = (time.process_time() - cpu_s) * 1e6
        yield Point(
            size=size,
            readings=(
                Reading(operation="restart", of="coordinator", unit=CPU_US, value=used_us),
                Reading(operation="restart", of="time", unit="ms", value=took_ms),
            ),
        )


async def _fill(app: CoordinatorApp, ids: int) -> None:
    """Begin with every id, then end empty transactions: a record each."""
    await app.ready.wait()
    producers: dict[int, int] = {}

    async def begin(number: int) -> None:
        request = wire.InitProducerIdRequest(
            transactional_id=f"id-{number}",
            instance_id=f"instance-{number}",
            init_number=1,
            transaction_timeout_ms=60_000,
        )
        response = await call(app, methods.INIT_PRODUCER_ID, request)
        producers[number] = response.producer_id

    async def end(number: int, epoch: int) -> None:
        request = wire.EndTxnRequest(
            transactional_id=f"id-{number}",
            producer_id=producers[number],
            producer_epoch=epoch,
            result=participants.TRANSACTION_RESULT_COMMIT,
        )
        await call(app, methods.END_TXN, request)

    for some in _slices(range(ids)):
        await asyncio.gather(*(begin(number) for number in some))
    for epoch in range(RECORDS_OF_ID - 1):
        for some in _slices(range(ids)):
            await asyncio.gather(*(end(number, epoch) for number in some))


def _slices(numbers: range) -> Iterable[range]:
    return (numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE))


JOURNAL = Curve(
    name="journal",
    axis="records in the coordinator's journal",
    sizes=(1_000, 10_000, 100_000, 300_000),
    measure=journal,
    why="Proportional until there is a snapshot, of which there is one every 50,000 records; from "
    "then on to the number of ids, of which there is one for ten records here, and to the "
    "records since.",
)

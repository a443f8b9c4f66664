"""Ended transactions that a coordinator remembers."""

import gc
import logging
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import structlog

from bench.growth.coordinator import call, coordinator, its_journal
from bench.growth.curve import Curve, Point, Reading
from bench.growth.probe import CPU_US
from semel.coordinator.v1 import history_pb2 as wire
from semel_common.ids import TopicPartition
from semel_common.wire import methods
from semel_coordinator.app import CoordinatorApp
from semel_coordinator.config import CoordinatorSettings
from semel_coordinator.record_serde import CoordinatorSerde
from semel_coordinator.transactions.machine import (
    AbortReason,
    Client,
    DecidedTransaction,
    EndedTransactionsKept,
    HistoryLimits,
    TransactionCompleted,
    TransactionState,
)
from semel_coordinator.transactions.machine.history.rings import EndedTransactions
from semel_runtime.journal.contract import Entry, Piece

PAGE = 1_000
PAGES = 10
SEARCHES = 3
_ABORTED = 10
"""One of so many transactions is aborted."""
_IDS = 1_000
"""So many transactional ids have written them, one after the other."""
_BYTES_MAX = 2**31 - 1
_SPAN_MS = 12 * 3_600_000
"""All of them ended within so long."""
_MIB = 1 << 20
_PARTITIONS = frozenset(
    TopicPartition(topic_id, 0) for topic_id in ("JlGqhUJJSn2gxRqMw7kTj0", "2vYxZcQw7kTj0n4BgxRqMA")
)
_COORDINATOR = "coordinator"


async def history(sizes: Sequence[float], folder: Path) -> AsyncIterator[Point]:
    """Put a snapshot into a journal, start a coordinator on it, and ask; all in this process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    empty_bytes = await _memory_bytes(await _remembering(folder / "empty", 0))
    for size in sizes:
        settings = await _remembering(folder / f"{size:g}", int(size))
        before_s = time.process_time()
        async with coordinator(settings.data_dir, settings) as app:
            load_us = (time.process_time() - before_s) * 1e6
            asked = await _questions(app)
        history_bytes = await _memory_bytes(settings) - empty_bytes
        readings = (
            Reading(operation="start", of=_COORDINATOR, unit=CPU_US, value=load_us),
            *asked,
            Reading(operation="memory", of=_COORDINATOR, unit="MiB", value=history_bytes / _MIB),
            Reading(operation="an entry", of="memory", unit="bytes", value=history_bytes / size),
        )
        yield Point(size=size, readings=readings)


async def _questions(app: CoordinatorApp) -> list[Reading]:
    await app.ready.wait()

    async def page() -> None:
        request = wire.ListTransactionHistoryRequest(limit=PAGE)
        answer = await call(app, methods.LIST_TRANSACTION_HISTORY, request)
        assert len(answer.transactions) == PAGE

    async def search() -> None:
        request = wire.ListTransactionHistoryRequest(transactional_id_prefix="none-begins-so")
        answer = await call(app, methods.LIST_TRANSACTION_HISTORY, request)
        assert not answer.transactions

    return [
        await _cost(f"the last {PAGE:,}", page, PAGES),
        await _cost("a search without a find", search, SEARCHES),
    ]


async def _cost(operation: str, act: Callable[[], Awaitable[None]], times: int) -> Reading:
    """Do something a few times, after a first time that does not count."""
    await act()
    before_s = time.process_time()
    for _ in range(times):
        await act()
    used_us = (time.process_time() - before_s) * 1e6 / times
    return Reading(operation=operation, of=_COORDINATOR, unit=CPU_US, value=used_us)


async def _memory_bytes(settings: CoordinatorSettings) -> int:
    """Return what a coordinator has asked the allocator for, once it is loaded.

    Resident memory would have what this process has used before, and given back to no system.
    """
    gc.collect()
    tracemalloc.start()
    try:
        async with coordinator(settings.data_dir, settings):
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def _remembering(folder: Path, size: int) -> CoordinatorSettings:
    """Make a journal whose snapshot has so many ended transactions; return what it is run with."""
    settings = CoordinatorSettings(
        data_dir=folder,
        transaction_history_entries_max=max(1, size),
        transaction_history_bytes_max=_BYTES_MAX,
    )
    async with coordinator(folder, settings) as app:
        await app.ready.wait()
    async with await its_journal(folder) as journal:
        claim = await journal.claim("growth")
        there = await _entries(journal.read_snapshot())
        there += await _entries(journal.read(claim.first_offset, max_bytes=_MIB))
        kept = _ended(size, settings.transaction_state_log_num_partitions)
        await journal.replace(claim.next_offset, _pieces(there, claim.next_offset - 1, kept))
    return settings


async def _entries(pieces: AsyncIterator[Piece]) -> list[Entry]:
    return [entry async for piece in pieces for entry in piece]


async def _pieces(
    there: Piece, last_offset: int, kept: Iterable[EndedTransactionsKept]
) -> AsyncIterator[Piece]:
    """Yield a snapshot: the records that are there already, then the history."""
    yield there
    serde = CoordinatorSerde()
    for part in kept:
        yield [(last_offset, serde.encode(part))]


def _ended(size: int, partitions: int) -> list[EndedTransactionsKept]:
    """Return transactions of two partitions each, spread over the transaction-log partitions."""
    limits = HistoryLimits(entries_max=max(1, size), bytes_max=_BYTES_MAX)
    rings = EndedTransactions(limits)
    begin_ms = time.time_ns() // 1_000_000 - _SPAN_MS
    for number in range(size):
        _end(rings, number, number % partitions, begin_ms + _SPAN_MS * number // size)
    return rings.parts()


def _end(rings: EndedTransactions, number: int, partition: int, at_ms: int) -> None:
    is_aborted = number // 50 % _ABORTED == 0
    state = TransactionState.PREPARE_ABORT if is_aborted else TransactionState.PREPARE_COMMIT
    writer = number % _IDS
    decided = DecidedTransaction(
        producer_id=(partition << 48) + writer,
        producer_epoch=number // _IDS,
        state=state,
        start_ms=at_ms - 20,
        committing=frozenset() if is_aborted else _PARTITIONS,
        aborting=_PARTITIONS if is_aborted else frozenset(),
        reason=AbortReason.CLIENT if is_aborted else None,
        traceparent="",
        decided_ms=at_ms - 5,
    )
    completed = TransactionCompleted(
        producer_id=decided.producer_id,
        producer_epoch=decided.producer_epoch,
        state=TransactionState.COMPLETE_ABORT if is_aborted else TransactionState.COMPLETE_COMMIT,
        completed_ms=at_ms,
        acknowledged_before_ms=(0, 2),
    )
    client = Client(name=f"import-{writer}", address="10.0.0.1", principal="User:import")
    rings.add(partition, decided, completed, transactional_id=f"import-{writer}", client=client)


HISTORY = Curve(
    name="history",
    axis="ended transactions that the coordinator remembers",
    sizes=(1_000, 10_000, 100_000, 1_000_000),
    measure=history,
    why="The last ones cost the same, however many there are: they are the ends of rings. A search "
    "looks at each, in pieces of a millisecond, and a start reads each from the snapshot. Memory "
    "is what was asked of the allocator, less that of a coordinator without a history.",
)

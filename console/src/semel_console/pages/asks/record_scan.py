"""Bounded reads of one log, and the transactions that wrote its records."""

import asyncio
import time

from aiosemel import (
    BatchOutcome,
    ConsumerOptions,
    ConsumerRecord,
    IsolationLevel,
    LogRange,
    LogRangeReader,
    TopicDescription,
    TopicPartition,
    TransactionOutcomeDescription,
)
from semel_console.insight.offset_views import Watermarks
from semel_console.views.blocks import Missing
from semel_console.views.record_views.message_view import (
    COMMITTED,
    RECORDS_MAX,
    ScannedRecords,
    WantedRecords,
    Writer,
)
from semel_console.web.visit import Visit

SCAN_MAX_S = 0.5
SCAN_MAX_OFFSETS = 20_000
"""How far one page looks for records: the address of the next page goes on from there."""
_FETCH_BYTES = 262_144
_TRANSACTIONS_MAX = 10
"""The transactions of one page whose ids are looked up."""


async def scan(
    visit: Visit, topic: TopicDescription, wanted: WantedRecords, marks: Watermarks
) -> ScannedRecords:
    """Read until a page is full, the log ends, or enough was read; never wait for a record.

    The audit has the user and the partition before a record is read.
    """
    at, sees_all = wanted.at, wanted.isolation != COMMITTED
    stop = wanted.start + 1 if wanted.one else wanted.start + SCAN_MAX_OFFSETS
    end = min(marks.end if sees_all else marks.stable_end, stop)
    if wanted.start >= end:
        return ScannedRecords(records=[], writers={}, scanned=0, next_offset=wanted.start)
    isolation = IsolationLevel.READ_UNCOMMITTED if sees_all else IsolationLevel.READ_COMMITTED
    is_noted = visit.readings.is_noted(visit.client, at)
    reader = visit.client.read_range(
        _range(topic, at, wanted.start, end),
        _options(isolation),
        with_outcomes=sees_all,
        operator="" if is_noted else visit.operator,
        reason="" if is_noted else f"to see records of {at} in the console",
    )
    found = await _read(reader, wanted.text.encode(), end)
    visit.readings.note(visit.client, at)
    return found


async def _read(reader: LogRangeReader, text: bytes, end: int) -> ScannedRecords:
    """Return the records of a range with a text in them, as many as a page has."""
    found: list[ConsumerRecord] = []
    writers: dict[int, Writer] = {}
    outcomes: dict[int, BatchOutcome | None] = {}
    scanned = 0

    def until(position: int) -> ScannedRecords:
        return ScannedRecords(
            records=found,
            outcomes=outcomes,
            writers=writers,
            scanned=scanned,
            next_offset=position,
        )

    stop_s = time.monotonic() + SCAN_MAX_S
    while batches := await reader.read():
        for batch in batches:
            for record in batch.records():
                scanned += 1
                if text and text not in (record.key or b"") and text not in (record.value or b""):
                    continue
                found.append(record)
                outcomes[record.offset] = batch.outcome
                if batch.is_transactional:
                    writers[record.offset] = (batch.producer_id, batch.producer_epoch)
                if len(found) == RECORDS_MAX:
                    return until(record.offset + 1)
        if time.monotonic() > stop_s:
            return until(reader.position)
    return until(end)


def _range(topic: TopicDescription, at: TopicPartition, start: int, end: int) -> LogRange:
    return LogRange(
        topic=at.topic,
        topic_id=topic.topic_id,
        partition=at.partition,
        start_offset=start,
        end_offset=end,
    )


def _options(isolation: IsolationLevel) -> ConsumerOptions:
    return ConsumerOptions(
        isolation_level=isolation,
        fetch_max_wait_ms=1,
        max_partition_fetch_bytes=_FETCH_BYTES,
    )


async def transactions_of(
    visit: Visit, scanned: ScannedRecords
) -> dict[Writer, TransactionOutcomeDescription | Missing]:
    """Return the transactions that wrote some records: each, and its end, as far as it is known."""
    writers = list(dict.fromkeys(scanned.writers.values()))[:_TRANSACTIONS_MAX]
    async with asyncio.TaskGroup() as tasks:
        asked = {
            writer: tasks.create_task(
                visit.ask(
                    "The transaction",
                    visit.admin.get_transaction_outcome(None, writer[1], producer_id=writer[0]),
                )
            )
            for writer in writers
        }
    return {writer: task.result() for writer, task in asked.items()}

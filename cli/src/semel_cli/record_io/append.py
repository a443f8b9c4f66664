"""`semel produce --expected-offset`: the whole input at one offset of a partition, or nothing."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from semel_cli.record_io.input_format import InputRecord
from semel_cli.shared.command_errors import CommandError
from semel_cli.shared.command_session import API_TIMEOUT_MS, REQUEST_TIMEOUT_MS
from semel_cli.shared.output import note
from semel_console.insight.texts import counted

if TYPE_CHECKING:
    from aiosemel import Producer, SemelClient, Transaction


class Place(NamedTuple):
    """Where to append."""

    topic: str
    partition: int
    expected_offset: int


async def append(
    client: "SemelClient",
    records: Sequence[InputRecord],
    at: Place,
    *,
    transactional_id: str | None,
    max_request_size_bytes: int,
) -> None:
    """Append, and say where; of a transaction, commit too."""
    from aiosemel import BaseOffsetMismatchError, ProducerOptions, TransactionAbortedError

    options = ProducerOptions(
        max_block_ms=API_TIMEOUT_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=API_TIMEOUT_MS,
        max_request_size_bytes=max_request_size_bytes,
    )
    if not records:
        raise CommandError("the input is empty: there is nothing to append")
    wrong = [record.partition for record in records if record.partition not in (None, at.partition)]
    if wrong:
        raise CommandError(
            f"a record is for partition {wrong[0]}, and --partition is {at.partition}"
        )
    try:
        if transactional_id is None:
            await _append_to(client.producer(options), records, at)
        else:
            producer = client.transactional_producer(transactional_id, options)
            await producer.init_transactions()
            async with producer.transaction(wait_until_visible=True) as transaction:
                await _append_to(transaction, records, at)
    except (BaseOffsetMismatchError, TransactionAbortedError) as error:
        raise CommandError(f"{error}. Nothing is stored in {at.topic}") from error
    count = counted(len(records), "record")
    note(f"{count} stored in {at.topic}-{at.partition} at offset {at.expected_offset}")


async def _append_to(
    producer: "Producer | Transaction", records: Sequence[InputRecord], at: Place
) -> None:
    now_ms = time.time_ns() // 1_000_000
    await producer.append(
        at.topic,
        [record.value for record in records],
        partition=at.partition,
        expected_base_offset=at.expected_offset,
        keys=[record.key for record in records],
        headers=[record.headers for record in records],
        timestamps_ms=[
            now_ms if record.timestamp_ms is None else record.timestamp_ms for record in records
        ],
    )

"""`semel produce --expected-offset`: the whole input at one offset of a partition, or nothing."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from semel_cli.input_format import InputRecord
from semel_cli.output import note
from semel_cli.session import API_TIMEOUT_MS, REQUEST_TIMEOUT_MS, CommandError

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
) -> None:
    """Append, and say where; of a transaction, commit too."""
    from aiosemel import BaseOffsetMismatchError, ProducerOptions, TransactionAbortedError

    options = ProducerOptions(
        max_block_ms=API_TIMEOUT_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        delivery_timeout_ms=API_TIMEOUT_MS,
    )
    if not records:
        raise CommandError("the input is empty: there is nothing to append")
    wrong = [each.partition for each in records if each.partition not in (None, at.partition)]
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
    count = "1 record" if len(records) == 1 else f"{len(records)} records"
    note(f"{count} stored in {at.topic}-{at.partition} at offset {at.expected_offset}")


async def _append_to(
    producer: "Producer | Transaction", records: Sequence[InputRecord], at: Place
) -> None:
    now_ms = time.time_ns() // 1_000_000
    await producer.append(
        at.topic,
        [each.value for each in records],
        partition=at.partition,
        expected_base_offset=at.expected_offset,
        keys=[each.key for each in records],
        headers=[each.headers for each in records],
        timestamps_ms=[
            now_ms if each.timestamp_ms is None else each.timestamp_ms for each in records
        ],
    )

"""What a topic holds once nothing is open in it, read without Spark."""

import asyncio
from collections.abc import Mapping, Sequence

from aiosemel import ConsumerOptions, IsolationLevel, OffsetReset, OffsetSpec, SemelClient
from aiosemel import TopicPartition as Partition

_SETTLE_TIMEOUT_S = 120.0
"""Twice the time-out of the transactions: an abandoned transaction has aborted by then."""
_POLL_S = 0.1


class OpenTransactionError(Exception):
    """A transaction stays open; the message is for the user."""


async def read(client: SemelClient, topic: str) -> Sequence[bytes]:
    """Return the committed values of a topic. Raises OpenTransactionError."""
    ends = await _ends(client, topic)
    values: list[bytes] = []
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with client.consumer(options=options) as consumer:
        consumer.assign(list(ends))
        for partition, end in ends.items():
            while await consumer.position(partition) < end:
                for batches in (await consumer.poll_columns()).values():
                    values += [value or b"" for batch in batches for value in batch.values]
    return values


async def _ends(client: SemelClient, topic: str) -> Mapping[Partition, int]:
    """Return where a topic ends, as soon as no transaction is open in it.

    That of a task that was killed may be so for a while, and hides what is committed behind it.
    """
    described = await client.admin().describe_topic(topic)
    partitions = [Partition(topic, partition.partition) for partition in described.partitions]
    try:
        async with asyncio.timeout(_SETTLE_TIMEOUT_S):
            while True:
                stable = await _offsets(client, partitions, IsolationLevel.READ_COMMITTED)
                ends = await _offsets(client, partitions, IsolationLevel.READ_UNCOMMITTED)
                if stable == ends:
                    return ends
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise OpenTransactionError(
            f"{topic} has had an open transaction for {_SETTLE_TIMEOUT_S:g} s, and readers wait for"
            f" its end: {', '.join(await _open(client, topic)) or 'it has ended since'}"
        ) from None


async def _open(client: SemelClient, topic: str) -> Sequence[str]:
    found = await client.admin().operators.list_open_transactions()
    return [
        f"producer id {transaction.producer_id}, epoch {transaction.producer_epoch}"
        f" of {transaction.known.transactional_id if transaction.known else 'an unknown id'}"
        f" in {transaction.partition} from offset {transaction.first_offset} on"
        for transaction in found.transactions
        if transaction.partition is not None and transaction.partition.topic == topic
    ]


async def _offsets(
    client: SemelClient, partitions: Sequence[Partition], level: IsolationLevel
) -> Mapping[Partition, int]:
    wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
    found = await client.admin().list_offsets(wanted, isolation_level=level)
    return {each: at.offset for each, at in found.items() if at is not None}

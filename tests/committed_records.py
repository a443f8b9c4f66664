"""The committed records of partitions: those of now, or of all transactions that have begun."""

from collections.abc import Iterable, Mapping

from aiosemel import (
    ConsumerOptions,
    ConsumerRecord,
    IsolationLevel,
    OffsetReset,
    SemelClient,
    TopicPartition,
)


async def visible_records(
    client: SemelClient, places: Iterable[tuple[str, int]]
) -> list[ConsumerRecord]:
    """Return the records that readers see by now: those before the last stable offset."""
    return await _up_to(client, await _ends(client, places, IsolationLevel.READ_COMMITTED))


async def decided_records(
    client: SemelClient, places: Iterable[tuple[str, int]]
) -> list[ConsumerRecord]:
    """Return the committed records, as soon as no stored record is in an open transaction.

    A commit, of Semel or of a database, is known before its markers are in the partitions, so a
    test that only asks for visible records can miss it.
    """
    return await _up_to(client, await _ends(client, places, IsolationLevel.READ_UNCOMMITTED))


async def _ends(
    client: SemelClient, places: Iterable[tuple[str, int]], isolation: IsolationLevel
) -> Mapping[TopicPartition, int]:
    async with client.consumer(options=ConsumerOptions(isolation_level=isolation)) as consumer:
        return await consumer.end_offsets(TopicPartition(*place) for place in places)


async def _up_to(client: SemelClient, ends: Mapping[TopicPartition, int]) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST, fetch_max_wait_ms=50)
    async with client.consumer(options=options) as consumer:
        consumer.assign(ends)
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            for records in (await consumer.poll(timeout_ms=500)).values():
                found += records
    return found

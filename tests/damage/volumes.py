"""Volumes to be damaged: of each service one, with pages of each kind, and their content.

The broker is a whole one that serves from its file. Coordinators read their journals at start and
never again, so theirs are what a small cluster has written, many times over.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from damage.broker import ABORT, COMMIT, PARTITIONS, SERVICE, TOPIC, Broker, batch, serving
from damage.reading import Partition, read
from semel.broker.v1 import broker_pb2 as wire
from semel_common.wire.methods import DELETE_RECORDS
from semel_local.cluster import LocalCluster
from semel_runtime.journal.contract import Entry, Piece
from semel_runtime.journal.sqlite import SqliteJournal

COORDINATOR, GROUP = "semel-coordinator 0", "semel-group 0"
_SMALL_BATCHES = 1_400
_LARGE_BATCHES = 24
_HUGE_BATCHES = 3
"""So large that their payloads are in a file of their own."""
_DELETED = 12
"""So many of the large ones are deleted: their pages are free."""
_BATCHES_PER_CALL = 40
_APPENDS = 80
"""Enough for a table of more than one level."""
_PIECES = 20
_READ_BYTES = 1 << 20


async def make_broker(folder: Path) -> list[Partition]:
    """Write a broker's volume; return the records that committed readers find in each partition."""
    async with (
        await SqliteJournal.open(folder, service=SERVICE) as journal,
        serving(journal) as broker,
    ):
        await _write(broker)
        await _delete(broker)
        return [await read(broker, number) for number in range(PARTITIONS)]


async def make_coordinators(folder: Path) -> dict[str, list[Entry]]:
    """Write the volumes of both coordinators, in folders by their services' names."""
    cluster_folder = folder / "cluster"
    async with LocalCluster(folder=cluster_folder) as cluster, cluster.client() as client:
        await client.admin().create_topic("orders", partitions=4)
        for number in range(4):
            producer = client.transactional_producer(f"writer-{number}")
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("orders", b"%d" % number)
    return {
        service: await _multiplied(
            cluster_folder / name, f"semel-{name}", folder / service, service
        )
        for name, service in (("coordinator-0", COORDINATOR), ("group-coordinator-0", GROUP))
    }


async def everything(journal: SqliteJournal) -> list[Entry]:
    """Claim a journal, and read all that a service reads at its start."""
    claim = await journal.claim("reader")
    found: list[Entry] = []
    if claim.has_snapshot:
        found += [each async for piece in journal.read_snapshot() for each in piece]
    reading = journal.read(claim.first_offset, max_bytes=_READ_BYTES)
    return found + [each async for piece in reading for each in piece]


async def _write(broker: Broker) -> None:
    await broker.produce(0, batch(b"aborted", b"aborted", epoch=0))
    await broker.end(0, 0, ABORT)
    await broker.produce(0, batch(b"committed", epoch=1))
    await broker.end(0, 1, COMMIT)
    for first in range(0, _SMALL_BATCHES, _BATCHES_PER_CALL):
        batches = [
            batch(b"%d" % n * 20, b"%d" % -n * 20, timestamps_ms=[n * 10, n * 10 + 1])
            for n in range(first, first + _BATCHES_PER_CALL)
        ]
        await broker.produce(0, *batches)
    for n in range(_LARGE_BATCHES):
        await broker.produce(1, batch(b"%06d" % n * 7_000, timestamps_ms=[n * 10]))
    for n in range(_HUGE_BATCHES):
        await broker.produce(1, batch(b"%06d" % n * 40_000, timestamps_ms=[n * 10]))


async def _delete(broker: Broker) -> None:
    """Cut off the first of the large batches, and wait until their pages are free."""
    position = wire.DeleteRecordsPartition(topic=TOPIC, partition=1, before_offset=_DELETED)
    await broker.call(DELETE_RECORDS, wire.DeleteRecordsRequest(partitions=[position]))
    store = broker.journal.batches
    while await store.read(1, 0, max_bytes=1, upto=_DELETED):  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0)


async def _multiplied(source: Path, made_as: str, target: Path, service: str) -> list[Entry]:
    """Write what one journal has many times into another one, behind a snapshot of it."""
    async with await SqliteJournal.open(source, service=made_as) as journal:
        entries = await everything(journal)
    records = [record for _, record in entries]
    async with await SqliteJournal.open(target, service=service) as journal:
        await journal.claim("writer")
        for number in range(_APPENDS):
            await journal.append(number * len(records), records)
        await journal.replace(2 * len(records), _pieces(entries))
        return await everything(journal)


async def _pieces(entries: Sequence[Entry]) -> AsyncIterator[Piece]:
    for _ in range(_PIECES):
        yield entries

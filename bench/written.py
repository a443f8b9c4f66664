"""How many bytes a broker writes to its disk for each byte of records."""

import tempfile
from itertools import islice
from pathlib import Path
from random import Random

from aiosemel import SemelClient
from bench.measure import Figure
from bench.processes import written_bytes
from bench.topics import fresh_topic
from semel_local import ProcessCluster

MEGABYTES = 200
VALUE_BYTES = 1_024
TRANSACTION_RECORDS = 20_000
PARTITIONS = 4


async def written() -> list[Figure]:
    """Send records by columns in transactions, and ask the system what the broker has written.

    Each value is random, so that no byte of it is saved. The system counts a byte when it is to go
    to the disk, and so twice if it is written twice.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ProcessCluster(Path(folder)) as cluster,
            SemelClient(cluster.bootstrap) as client,
        ):
            topic = await fresh_topic(client, PARTITIONS)
            (broker,) = (pid for name, pid in cluster.pids().items() if "broker" in name)
            before = written_bytes(broker)
            sent = await _send(client, topic, MEGABYTES * 1_000_000 // VALUE_BYTES)
            after = written_bytes(broker)
    factor = (after - before) / sent
    return [
        Figure(name="bytes of records", value=sent / 1e6, unit="MB"),
        Figure(name="bytes written", value=(after - before) / 1e6, unit="MB"),
        Figure(name="bytes written for each byte", value=factor, unit="", goal="≤ 1.1"),
    ]


async def _send(client: SemelClient, topic: str, records: int) -> int:
    """Send so many records; return how many bytes their values have."""
    random = Random(1)
    values = iter(lambda: random.randbytes(VALUE_BYTES), b"")
    sent = 0
    async with client.transactional_producer(topic) as producer:
        await producer.init_transactions()
        while column := list(islice(values, min(TRANSACTION_RECORDS, records - sent))):
            async with producer.transaction():
                share = -(-len(column) // PARTITIONS)
                for partition in range(PARTITIONS):
                    if some := column[partition * share : (partition + 1) * share]:
                        await producer.send_columns(topic, some, partition=partition)
            sent += len(column)
    return sent * VALUE_BYTES

"""What `make bench` takes of the workloads: figures of Semel alone, on a cluster that runs."""

from aiosemel import SemelClient
from bench.clients.semel.run import fill, measure
from bench.measure import Figure, percentile
from bench.workloads import (
    BULK_COLUMNS,
    BULK_RECORDS,
    CONSUME,
    VISIBLE,
    Sample,
    transactions,
    transform,
)

_PRODUCERS = 64
_SOURCE_RECORDS = 1_000_000


async def many_producers(bootstrap: str) -> list[Figure]:
    """Let many producers of one process run transactions at the same time."""
    async with SemelClient(bootstrap) as client:
        sample = await measure(client, transactions(_PRODUCERS))
    return [_transactions(f"{_PRODUCERS} producers", sample, goal="≥ 2,000")]


async def one_producer(bootstrap: str) -> list[Figure]:
    """Let one producer run transactions one after the other, and time each commit.

    The time of a commit includes that its four records are sent and acknowledged.
    """
    async with SemelClient(bootstrap) as client:
        sample = await measure(client, transactions(1))
    return [_transactions("1 producer", sample), *_latencies("commit", sample, goal="≤ 1.5")]


async def visible(bootstrap: str) -> list[Figure]:
    """Time from a send in a transaction until a read_committed consumer has its record."""
    async with SemelClient(bootstrap) as client:
        sample = await measure(client, VISIBLE)
    return _latencies("send → read_committed poll", sample)


async def one_record(bootstrap: str) -> list[Figure]:
    """Copy records from one topic to another, each in a transaction of its own."""
    async with SemelClient(bootstrap) as client:
        source = await fill(client, BULK_COLUMNS, BULK_COLUMNS.records_per_transaction)
        sample = await measure(client, transform(1), source=source)
    name = "consume-transform-produce, 1 record a transaction"
    return [_transactions(name, sample, goal="≥ 300")]


async def columns(bootstrap: str) -> list[Figure]:
    """Send columns in transactions of 100,000 records, then poll them as columns."""
    async with SemelClient(bootstrap) as client:
        sent = await measure(client, BULK_COLUMNS)
        source = await fill(client, BULK_COLUMNS, _SOURCE_RECORDS)
        polled = await measure(
            client, CONSUME, source=source, records_max=_SOURCE_RECORDS, warm_up_s=0.0
        )
    return [
        _records("column send in transactions", sent, goal="≥ 400,000"),
        _records("column poll", polled, goal="≥ 1,000,000"),
    ]


async def one_by_one(bootstrap: str) -> list[Figure]:
    """Send records one by one in transactions of 10,000."""
    async with SemelClient(bootstrap) as client:
        sample = await measure(client, BULK_RECORDS)
    return [_records("record-by-record send", sample, goal="≥ 120,000")]


def _transactions(name: str, sample: Sample, goal: str = "") -> Figure:
    rate = sample.transactions / sample.elapsed_s
    return Figure(name=name, value=rate, unit="transactions/s", goal=goal)


def _records(name: str, sample: Sample, goal: str) -> Figure:
    rate = sample.records / sample.elapsed_s
    return Figure(name=name, value=rate, unit="records/s", goal=goal)


def _latencies(name: str, sample: Sample, goal: str = "") -> list[Figure]:
    latencies = list(sample.latencies_ms)
    return [
        Figure(name=f"{name} p50", value=percentile(latencies, 0.5), unit="ms", goal=goal),
        Figure(name=f"{name} p99", value=percentile(latencies, 0.99), unit="ms"),
    ]

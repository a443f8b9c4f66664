"""Spans of clients and services in one process: their parents, their links, and missing links."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from aiosemel import ConsumerRecord, JointHandle, Outputs, SemelClient, Transform
from aiosemel._joint.joint_trace import joint_parent
from aiosemel.errors import TransactionAbortedError
from aiosemel.tracing import links_of
from semel_local import LocalCluster

COMMIT = "journal commit"


@pytest.fixture
async def cluster(provider: TracerProvider) -> AsyncIterator[LocalCluster]:
    async with LocalCluster(brokers=2, tracer_provider=provider) as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[SemelClient]:
    async with cluster.client() as client:
        await client.admin().create_topic("orders", partitions=2)
        yield client


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """Return the spans of a name, or of an RPC by the end of its name."""
    return [
        span
        for span in exporter.get_finished_spans()
        if span.name == name or (name.startswith("/") and span.name.endswith(name))
    ]


def only(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (span,) = named(exporter, name)
    return span


def trace_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id


def scope(span: ReadableSpan) -> str:
    """Return which instance made a span."""
    assert span.instrumentation_scope is not None
    return span.instrumentation_scope.name


def linked(span: ReadableSpan) -> set[int]:
    return {link.context.span_id for link in span.links}


def ids(spans: Sequence[ReadableSpan]) -> set[int]:
    return {context.span_id for span in spans if (context := span.get_span_context())}


async def read_all(client: SemelClient, count: int) -> list[ConsumerRecord]:
    consumer = client.consumer()
    consumer.assign([("orders", 0), ("orders", 1)])
    consumer.seek_to_beginning()
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            for records in (await consumer.poll()).values():
                found += records
    return found


async def transact(client: SemelClient, transactional_id: str, *, count: int = 1) -> None:
    producer = client.transactional_producer(transactional_id)
    await producer.init_transactions()
    for number in range(count):
        async with producer.transaction(wait_until_visible=True) as transaction:
            await transaction.send("orders", b"pizza", partition=number % 2)


async def test_transactions_are_traces_of_their_own_without_a_span_around(
    client: SemelClient, exporter: InMemorySpanExporter
) -> None:
    await transact(client, "payer", count=2)
    transactions = named(exporter, "transaction")
    assert len({trace_of(transaction) for transaction in transactions}) == 2
    assert all(transaction.parent is None for transaction in transactions)


async def test_a_group_commit_is_a_span_in_each_of_its_traces_linked_to_all_it_serves(
    client: SemelClient, exporter: InMemorySpanExporter
) -> None:
    await asyncio.gather(*(transact(client, f"payer-{n}", count=10) for n in range(8)))
    commits = named(exporter, COMMIT)
    shared = [commit for commit in commits if commit.links]
    assert shared, "eight producers at a time share commits"
    requests = {
        context.span_id: each
        for each in exporter.get_finished_spans()
        if each.kind.name == "SERVER" or each.name == "complete transaction"
        if (context := each.get_span_context())
    }
    for span in shared:
        assert span.parent is not None
        others = [requests[each] for each in linked(span)]
        assert span.parent.span_id not in linked(span)
        assert {scope(other) for other in others} == {scope(span)}, "one instance has one journal"
    complete = named(exporter, "complete transaction")
    transactions = {trace_of(each) for each in named(exporter, "send orders")}
    assert {trace_of(each) for each in complete} == transactions


@pytest.mark.parametrize("waits", [True, False])
async def test_a_commit_is_a_span_of_the_callers_that_wait_for_it(
    client: SemelClient, exporter: InMemorySpanExporter, *, waits: bool
) -> None:
    producer = client.transactional_producer("payer")
    await producer.init_transactions()
    async with producer.transaction(wait_until_visible=waits) as transaction:
        await transaction.send("orders", b"pizza", partition=0)
    # It is stable only when its markers are written, and what completes it is decided then.
    await read_all(client, 1)
    async with producer.transaction(wait_until_visible=True) as transaction:
        await transaction.send("orders", b"pizza", partition=0)
    first, second = named(exporter, "transaction")
    completions = {trace_of(each): each for each in named(exporter, "complete transaction")}
    assert set(completions) == {trace_of(first), trace_of(second)}
    above = {each.parent.span_id for each in named(exporter, COMMIT) if each.parent is not None}
    assert bool(above & ids([completions[trace_of(first)]])) == waits
    assert above & ids([completions[trace_of(second)]])


async def test_one_request_with_several_batches_is_linked_to_each(
    client: SemelClient, exporter: InMemorySpanExporter
) -> None:
    await client.admin().create_topic("wide", partitions=8)
    producer = client.producer()
    await asyncio.gather(*[await producer.send("wide", b"x", partition=n) for n in range(8)])
    sends = named(exporter, "send wide")
    calls = [each for each in named(exporter, "/Produce") if each.kind.name == "CLIENT"]
    reached = {parent.span_id for call in calls if (parent := call.parent)}
    assert reached.union(*map(linked, calls)) == ids(sends)


async def test_a_poll_is_linked_to_the_sends_of_its_records(
    client: SemelClient, exporter: InMemorySpanExporter
) -> None:
    await transact(client, "payer", count=4)
    records = await read_all(client, 4)
    sends = ids(named(exporter, "send orders"))
    assert set().union(*map(linked, named(exporter, "poll orders"))) == sends
    assert {link.context.span_id for link in links_of(records)} == sends


async def test_a_transformation_links_what_it_consumed_to_its_transaction(
    client: SemelClient, exporter: InMemorySpanExporter
) -> None:
    await transact(client, "payer")
    await client.admin().create_topic("receipts", partitions=1)
    running: list[Transform] = []

    async def handle(records: Sequence[ConsumerRecord], outputs: Outputs) -> None:
        for record in records:
            await outputs.send("receipts", record.value)
        running[0].stop()

    running.append(
        client.transform(source=["orders"], group="g", transactional_id="t", handler=handle)
    )
    await running[0]
    process = only(exporter, "process orders")
    assert linked(process) == ids(named(exporter, "send orders"))
    receipt = only(exporter, "send receipts")
    assert trace_of(receipt) == trace_of(process)


async def test_a_refused_request_says_so_on_both_sides(
    client: SemelClient, exporter: InMemorySpanExporter
) -> None:
    first, second = (client.transactional_producer("payer") for _ in range(2))
    await first.init_transactions()
    await first.begin_transaction()
    await (await first.send("orders", b"pizza", partition=0))
    await second.init_transactions()
    with pytest.raises(TransactionAbortedError):
        await first.commit()
    refused = [
        each
        for each in named(exporter, "/EndTxn")
        if each.attributes and each.attributes.get("semel.error") == "PRODUCER_FENCED"
    ]
    status = {each.kind.name: each.status.status_code for each in refused}
    assert status == {"CLIENT": StatusCode.ERROR, "SERVER": StatusCode.UNSET}
    assert {
        each.attributes and each.attributes["rpc.response.status_code"] for each in refused
    } == {"FAILED_PRECONDITION"}


async def test_all_clients_of_a_joint_transaction_share_its_trace(
    client: SemelClient, cluster: LocalCluster, exporter: InMemorySpanExporter
) -> None:
    handle = JointHandle(transactional_id="sink", txn_version=1, owner="query", run="first")
    async with cluster.client() as elsewhere, elsewhere.join(handle) as writer:
        await writer.send("orders", b"pizza", partition=0)
        receipt = await writer.finish()
    async with client.joint_transaction_of(handle) as joint:
        await joint.commit([receipt], wait_until_visible=True)
    names = ("send orders", "/JoinTxn", "/EndJointTxn", "/WriteTxnMarkers", "complete transaction")
    traces = {trace_of(each) for name in names for each in named(exporter, name)}
    assert len(traces) == 1
    assert all(named(exporter, name) for name in names)


@pytest.mark.parametrize("is_on", [False, True], ids=["off", "not sampled"])
async def test_an_untraced_call_leaves_neither_headers_nor_spans(is_on: bool) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with (
        LocalCluster(tracer_provider=provider if is_on else None) as cluster,
        cluster.client() as client,
    ):
        await client.admin().create_topic("orders", partitions=2)
        await transact(client, "payer", count=2)
        records = await read_all(client, 2)
    assert [record.headers for record in records] == [(), ()]
    assert exporter.get_finished_spans() == ()
    provider.shutdown()


async def test_what_clients_do_in_the_background_is_no_trace(
    client: SemelClient, exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    tracer = provider.get_tracer("test")
    async with client.consumer("g") as consumer:
        consumer.subscribe(["orders"])
        with tracer.start_as_current_span("a span that is current when the background begins"):
            await consumer.poll(timeout_ms=1_000)
        assert consumer.assignment()
    quiet = ("/Fetch", "/ConsumerGroupHeartbeat", "/Metadata", "/RegisterInstance", "/OpenFrames")
    assert [each.name for name in quiet for each in named(exporter, name)] == []


def test_every_process_decides_the_same_about_a_joint_transaction() -> None:
    def decided(version: int) -> set[bool]:
        handle = JointHandle(transactional_id="s", txn_version=version, owner="q", run="r")
        tracers = (
            TracerProvider(sampler=TraceIdRatioBased(0.5), shutdown_on_exit=False).get_tracer("t")
            for _ in range(2)
        )
        parents = [joint_parent(tracer, handle) for tracer in tracers]
        assert len({(parent.trace_id, parent.span_id) for parent in parents}) == 1
        return {parent.trace_flags.sampled for parent in parents}

    decisions = [decided(version) for version in range(40)]
    assert all(len(decision) == 1 for decision in decisions)
    assert set().union(*decisions) == {True, False}


async def test_a_large_batch_names_its_writer_once(client: SemelClient) -> None:
    producer = client.producer()
    await (await producer.send_columns("orders", [b""] * 20_000, partition=0))
    records = await read_all(client, 20_000)
    assert [bool(record.headers) for record in records[:3]] == [True, False, False]

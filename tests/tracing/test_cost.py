"""The cost of a transaction that is not recorded: one question to the sampler, where it begins.

Not even that, if the sampler is one by ratio: then it makes no call to OpenTelemetry's SDK.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

from semel_common.telemetry import trace_context
from semel_common.telemetry.otlp import ProcessResource
from semel_local import LocalCluster

COUNT = 10
CALLS_MAX = 55
"""Of a transaction with participants at two brokers: there are some for each request."""


class Dropping(Sampler):
    """Drops everything, and counts what it is asked about: each span that is begun, once."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def should_sample(
        self,
        parent_context: Context | None,  # noqa: ARG002 - OpenTelemetry's signature
        trace_id: int,  # noqa: ARG002 - as above
        name: str,
        kind: SpanKind | None = None,  # noqa: ARG002 - as above
        attributes: Attributes = None,  # noqa: ARG002 - as above
        links: Sequence[Link] | None = None,  # noqa: ARG002 - as above
        trace_state: TraceState | None = None,  # noqa: ARG002 - as above
    ) -> SamplingResult:
        self.asked[name] += 1
        return SamplingResult(Decision.DROP)

    def get_description(self) -> str:
        return "drops everything, and counts"


class Counting(TraceIdRatioBased):
    """Records a share, and counts what it is asked about: each span that is begun, once."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.asked: Counter[str] = Counter()

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        self.asked[name] += 1
        return super().should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )


async def test_a_transaction_that_is_not_recorded_is_decided_once_and_makes_no_other_span() -> None:
    sampler = Dropping()
    assert await _asked(sampler, sampler.asked) == {"transaction": 3}


@pytest.mark.parametrize("parent_based", [True, False])
async def test_a_transaction_outside_the_share_that_is_recorded_makes_no_span_at_all(
    parent_based: bool,
) -> None:
    share = Counting(0)
    assert await _asked(ParentBased(share) if parent_based else share, share.asked) == {}


async def test_a_transaction_inside_the_share_is_decided_once() -> None:
    share = Counting(1)
    assert await _asked(ParentBased(share), share.asked) == {"transaction": 3}


async def _asked(sampler: Sampler, asked: Counter[str]) -> Counter[str]:
    """Return what three transactions, with several participants each, ask a sampler about."""
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    async with (
        LocalCluster(brokers=2, tracer_provider=provider) as cluster,
        cluster.client() as client,
    ):
        await client.admin().create_topic("orders", partitions=4)
        group = client.consumer("payers").group_metadata()
        producer = client.transactional_producer("payer")
        await producer.init_transactions()
        asked.clear()
        for number in range(3):
            async with producer.transaction(wait_until_visible=True) as transaction:
                for partition in range(4):
                    await transaction.send("orders", b"pizza", partition=partition)
                await transaction.send_offsets({("orders", 0): number}, group)
        asked = Counter(asked)
    provider.shutdown()
    return asked


async def test_a_transaction_that_is_not_recorded_calls_nothing_that_makes_spans() -> None:
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(0)), shutdown_on_exit=False)
    async with (
        LocalCluster(brokers=2, tracer_provider=provider) as cluster,
        cluster.client() as client,
    ):
        await client.admin().create_topic("orders", partitions=4)
        producer = client.transactional_producer("payer")
        await producer.init_transactions()
        with _counting_calls() as calls:
            for _ in range(COUNT):
                async with producer.transaction(wait_until_visible=True) as transaction:
                    for partition in range(4):
                        await transaction.send("orders", b"pizza", partition=partition)
    provider.shutdown()
    assert calls.pop("opentelemetry.sdk.trace.id_generator.generate_trace_id") == COUNT
    makers = ("opentelemetry.sdk.", "semel_coordinator.", "semel_runtime.runner.")
    assert [name for name in calls if name.startswith(makers)] == []
    assert "aiosemel._producer.sending.producer_spans.sending" not in calls
    assert "semel_common.telemetry.trace_context.sampled" not in calls
    assert sum(calls.values()) <= COUNT * CALLS_MAX, calls


@contextmanager
def _counting_calls() -> Iterator[Counter[str]]:
    """Count the calls to functions of OpenTelemetry, and of our modules that are about traces."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        module = str(frame.f_globals.get("__name__", ""))
        ours = module.endswith((".tracing", ".traced", ".roots", ".spans"))
        if event == "call" and (ours or module.startswith("opentelemetry.")):
            calls[f"{module}.{frame.f_code.co_name}"] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def test_what_begins_where_nothing_is_traced_hides_nothing() -> None:
    assert trace_context.outside() is trace_context.outside(), "no context is made"


def test_the_resource_of_a_process_is_the_one_it_is_made_of() -> None:
    other = Resource.create({"service.name": "broker", "service.instance.id": "broker-0"})
    resource = ProcessResource(other)
    assert resource == other
    assert hash(resource) == hash(other)
    assert {other: "the same"}[resource] == "the same"
    assert resource != Resource.create({"service.name": "coordinator"})

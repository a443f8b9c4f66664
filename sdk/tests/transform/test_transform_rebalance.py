"""Rebalances around transactions, and anything at all in any order."""

import asyncio
from collections.abc import Sequence

import pytest
from consumer_harness import Member, client_of, pass_time
from fake_cluster import FakeCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from transform_harness import FakeTransactions, Fault, app_of

from aiosemel import ConsumerRecord, Outputs, TransactionAborted
from aiosemel.errors import (
    GroupIdNotFoundError,
    SemelError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from semel.common.v1.records_pb2 import Records as Columns
from semel_runtime.testing.virtual_time import VirtualTimeLoop

Records = Sequence[ConsumerRecord]


def cluster(partitions: int = 2, records: int = 4) -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("in", partitions)
    for partition in range(partitions):
        for number in range(records):
            fake.append("in", partition, [b"%d-%02d" % (partition, number)])
    return fake


def lag(fake: FakeCluster) -> int:
    """Return how many records are not consumed."""
    return sum(log.end - fake.committed.get(key, (0, ""))[0] for key, log in fake.logs.items())


def assert_exactly_once(fake: FakeCluster, *services: FakeTransactions) -> None:
    visible = [value for service in services for value in service.values()]
    sent = [v for log in fake.logs.values() for b in log.batches for v in _values(b.payload)]
    assert sorted(v for v in visible if v) == sorted(sent)


def _values(payload: bytes) -> list[bytes]:
    return list(Columns.FromString(payload).values)


@pytest.mark.parametrize(
    "refusal", [UnknownMemberIdError, StaleMemberEpochError, GroupIdNotFoundError]
)
async def test_a_member_that_is_fenced_in_the_middle_aborts_and_goes_on(
    refusal: type[SemelError],
) -> None:
    fake = cluster()
    service = FakeTransactions(fake, refusal=refusal)
    service.commits_after.append(lambda: fake.expel(next(iter(fake.members))))
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: lag(fake) == 0)
        assert_exactly_once(fake, service)
        assert len(app.events_of(TransactionAborted)) >= 1
        assert app.transform.stats.producers == 1


async def test_partitions_are_not_given_up_while_their_transaction_is_open() -> None:
    fake = cluster()
    goes_on = asyncio.Event()

    async def handler(records: Records, outputs: Outputs) -> None:
        await goes_on.wait()
        for record in records:
            await outputs.send("out", record.value)

    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler) as app:
        await app.until(lambda: "begin" in service.log)
        (member_id,) = fake.members
        owned = fake.members[member_id].owned
        assert owned
        other = Member.of(client, topics=["in"])
        for _ in range(20):
            await other.poll()
            assert fake.members[member_id].owned == owned
        goes_on.set()
        while not other.consumer.assignment():
            await other.poll()
        assert "commit" in service.log


async def test_records_whose_partition_goes_before_their_transaction_are_dropped() -> None:
    fake = cluster()
    service, other_service = FakeTransactions(fake), FakeTransactions(fake)
    async with (
        client_of(fake, seed=1) as client,
        client_of(fake, seed=2) as other,
        app_of(client, service, linger_ms=60_000) as first,
    ):
        await pass_time(2)
        assert "begin" not in service.log
        async with app_of(other, other_service) as second:
            await second.until(lambda: bool(other_service.visible))
            await first.until(lambda: lag(fake) == 0)
            assert_exactly_once(fake, service, other_service)
            assert len(service.values()) == len(other_service.values()) == 4


async def test_suspects_of_a_partition_that_goes_are_forgotten() -> None:
    fake = cluster()
    fails = True

    async def handler(records: Records, outputs: Outputs) -> None:
        if fails:
            raise ValueError("not yet")
        for record in records:
            await outputs.send("out", record.value)

    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, handler, handler_retries=1_000_000) as app,
    ):
        await app.until(lambda: app.transform.stats.aborted > 3)
        fake.expel(next(iter(fake.members)))
        await app.until(lambda: app.transform.stats.aborted > 6)
        fails = False
        await app.until(lambda: lag(fake) == 0)
        assert_exactly_once(fake, service)


FAULTS = {
    "begin": [Fault.TIMED_OUT, Fault.ENDED],
    "send": [Fault.TIMED_OUT, Fault.ABORTABLE, Fault.ENDED, Fault.FENCED],
    "send_offsets": [Fault.TIMED_OUT, Fault.ABORTABLE, Fault.ENDED, Fault.FENCED],
    "commit": [
        Fault.TIMED_OUT,
        Fault.ABORTED,
        Fault.UNKNOWN_DONE,
        Fault.UNKNOWN_LOST,
        Fault.UNKNOWN_ABORTED,
        Fault.ENDED,
        Fault.ENDED_UNKNOWN_DONE,
        Fault.ENDED_UNKNOWN_LOST,
        Fault.FENCED,
        Fault.FENCED_UNKNOWN_DONE,
    ],
    "abort": [Fault.TIMED_OUT, Fault.ENDED],
}


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, Fault]]:
    methods = draw(st.lists(st.sampled_from(sorted(FAULTS)), max_size=12))
    return [(method, draw(st.sampled_from(FAULTS[method]))) for method in methods]


@settings(max_examples=40)
@given(
    script=scripts(),
    expelled_at=st.lists(st.integers(1, 40), max_size=3),
    second_from=st.integers(0, 30),
    seed=st.integers(0, 1_000),
)
def test_whatever_happens_every_record_is_consumed_exactly_once(
    script: list[tuple[str, Fault]], expelled_at: list[int], second_from: int, seed: int
) -> None:
    """C14, C15: two instances of one application, each with an id and faults of its own."""

    async def run() -> None:
        fake = cluster(partitions=3, records=6)
        services = [FakeTransactions(fake), FakeTransactions(fake)]
        for at, (method, fault) in enumerate(script):
            services[at % 2].faults[method].append(fault)
        max_records = 1 + seed % 4
        async with (
            client_of(fake, seed=seed) as client,
            client_of(fake, seed=seed + 1) as other,
            app_of(
                client, services[0], take_over_when_fenced=True, max_records=max_records
            ) as first,
        ):
            await pass_time(second_from / 10)
            async with app_of(
                other, services[1], take_over_when_fenced=True, max_records=max_records
            ) as second:
                for tenths in sorted(expelled_at):
                    await pass_time(tenths / 10)
                    if fake.members:
                        fake.expel(min(fake.members))
                await first.until(lambda: lag(fake) == 0)
                await second.stop()
            await first.stop()
        assert_exactly_once(fake, *services)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


@pytest.mark.parametrize("after", range(0, 60, 3))
async def test_a_cancellation_at_any_moment_loses_and_repeats_nothing(after: int) -> None:
    fake = cluster()
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, max_records=2) as app:
        for _ in range(after * 4):
            await asyncio.sleep(0)
        assert app.running is not None
        app.running.cancel()
        await asyncio.wait([app.running])
        assert app.running.cancelled()
        async with app_of(client, service) as again:
            await again.until(lambda: lag(fake) == 0)
            assert_exactly_once(fake, service)

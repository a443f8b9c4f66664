"""Consume, transform, produce: every way in which a transaction can end."""

import asyncio
from collections.abc import Sequence

import pytest
from consumer_harness import client_of, pass_time
from fake_cluster import FakeCluster
from transform_harness import FakeTransactions, Fault, app_of

from aiosemel import (
    ConsumerRecord,
    Outputs,
    TopicPartition,
    TransactionAborted,
    TransactionCommitted,
    TransformStats,
)
from aiosemel.errors import (
    IllegalStateError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionOutcomeUnknownError,
    UnknownServerError,
)

IN0 = TopicPartition("in", 0)
Records = Sequence[ConsumerRecord]


@pytest.fixture
def fake() -> FakeCluster:
    fake = FakeCluster()
    fake.create_topic("in", 2)
    for number in range(3):
        fake.append("in", 0, [b"a%d" % number])
    fake.append("in", 1, [b"b0"])
    return fake


INPUTS = [b"a0", b"a1", b"a2", b"b0"]


def consumed(fake: FakeCluster) -> dict[int, int]:
    return {key.partition: offset for key, (offset, _) in fake.committed.items()}


def is_done(fake: FakeCluster) -> bool:
    return consumed(fake) == {0: 3, 1: 1}


def assert_exactly_once(fake: FakeCluster, service: FakeTransactions) -> None:
    """C14, C15: every input is consumed by one committed transaction, with its outputs."""
    assert sorted(v for v in service.values() if v is not None) == INPUTS
    assert consumed(fake) == {0: 3, 1: 1}


# -- committed -----------------------------------------------------------------------------------


async def test_outputs_and_offsets_become_visible_together(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)
        await app.stop()
        assert service.log[:2] == ["init", "begin"]
        assert service.log[-3:] == ["send_offsets", "commit", "close"]
        stats = app.transform.stats
        assert stats.records_in == stats.records_out == 4
        assert stats.aborted == stats.unknown == 0
        assert stats.producers == 1
        events = app.events_of(TransactionCommitted)
        assert len(events) == stats.committed == len(app.events)
        assert sum(event.records_in for event in events) == 4
        assert {k: v for event in events for k, v in event.offsets.items()}[IN0] == 3
        assert fake.members == {}, "it has left the group"


async def test_a_handler_gets_partitions_one_after_the_other_in_offset_order(
    fake: FakeCluster,
) -> None:
    seen: list[tuple[int, int]] = []

    async def handler(records: Records, _: Outputs) -> None:
        seen.extend((record.partition, record.offset) for record in records)

    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler) as app:
        await app.until(lambda: is_done(fake))
        assert sorted(seen) == [(0, 0), (0, 1), (0, 2), (1, 0)]
        assert service.values() == []
        assert app.transform.stats.records_out == 0


async def test_a_transaction_consumes_no_more_records_than_wanted(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, max_records=1) as app:
        await app.until(lambda: is_done(fake))
        assert [event.records_in for event in app.events_of(TransactionCommitted)] == [1] * 4


async def test_a_transaction_waits_for_more_records_as_long_as_it_lingers(
    fake: FakeCluster,
) -> None:
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, linger_ms=1_000) as app:
        await pass_time(0.5)
        fake.append("in", 1, [b"b1"])
        await app.until(lambda: consumed(fake) == {0: 3, 1: 2})
        assert app.transform.stats == TransformStats(
            committed=1, records_in=5, records_out=5, producers=1
        )


async def test_a_transaction_that_is_large_enough_waits_no_longer(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, linger_ms=60_000, max_bytes=1) as app,
    ):
        await app.until(lambda: is_done(fake))
        assert asyncio.get_running_loop().time() < 10


async def test_the_group_goes_on_behind_markers(fake: FakeCluster) -> None:
    fake.append_marker("in", 0, committed=True)
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: consumed(fake) == {0: 4, 1: 1})


# -- definitely not committed --------------------------------------------------------------------


METHODS = ["begin", "send", "send_offsets", "commit"]


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("fault", [Fault.TIMED_OUT, Fault.ABORTABLE])
async def test_after_an_abort_the_records_are_read_again(
    fake: FakeCluster, method: str, fault: Fault
) -> None:
    service = FakeTransactions(fake)
    service.faults[method].extend([fault, fault])
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)
        assert app.transform.stats.aborted == 2
        assert app.transform.stats.producers == 1
        aborted = app.events_of(TransactionAborted)
        assert [event.outcome_unknown for event in aborted] == [False, False]
        assert service.log.count("abort") == 2


async def test_a_transaction_that_cannot_begin_yet_is_begun_again(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["begin"].extend([Fault.TIMED_OUT] * 2)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)
        assert app.transform.stats.aborted == 0
        service.faults["begin"].extend([Fault.TIMED_OUT] * 1_000)
        fake.append("in", 1, [b"b1"])
        await pass_time(20)
        await app.stop()


@pytest.mark.parametrize("method", [*METHODS, "abort"])
async def test_a_producer_that_has_come_to_its_end_is_replaced(
    fake: FakeCluster, method: str
) -> None:
    service = FakeTransactions(fake)
    service.faults[method].append(Fault.ENDED)
    if method == "abort":
        service.faults["commit"].append(Fault.ABORTED)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)
        assert app.transform.stats.producers == 2
        assert service.log.count("close") == 1


async def test_an_abort_without_an_answer_is_repeated(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(Fault.ABORTED)
    service.faults["abort"].extend([Fault.TIMED_OUT] * 3)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)
        assert service.log.count("abort") == 4
        assert app.transform.stats.aborted == 1


async def test_a_replacement_that_cannot_begin_yet_is_tried_again(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        service.faults["commit"].append(Fault.ENDED)
        service.faults["init"].extend([Fault.TIMED_OUT] * 2)
        fake.append("in", 1, [b"b1"])
        await app.until(lambda: consumed(fake) == {0: 3, 1: 2})
        assert app.transform.stats.producers == 2
        assert len(service.made) == 4
        assert service.log.count("close") == 3


async def test_pauses_grow_while_nothing_commits(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].extend([Fault.ABORTED] * 8)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)
        assert 10 < asyncio.get_running_loop().time() < 20


async def test_what_a_server_cannot_explain_is_tried_again_for_a_while(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].extend([Fault.BROKEN] * 20)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        assert_exactly_once(fake, service)


async def test_what_a_server_never_explains_stops_it(fake: FakeCluster) -> None:
    for method in ("send_offsets", "commit"):
        service = FakeTransactions(fake)
        service.faults[method].extend([Fault.BROKEN] * 21)
        async with client_of(fake) as client, app_of(client, service, starts=False) as app:
            with pytest.raises(UnknownServerError):
                await app.transform.run()
            assert service.log[-2:] == ["abort", "close"]
            assert service.visible == []
            assert fake.members == {}


# -- unknown -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "commits"),
    [(Fault.UNKNOWN_DONE, 2), (Fault.UNKNOWN_LOST, 2), (Fault.UNKNOWN_ABORTED, 3)],
)
async def test_an_unknown_outcome_is_asked_for_until_it_is_known(
    fake: FakeCluster, fault: Fault, commits: int
) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(fault)
    async with client_of(fake) as client, app_of(client, service, linger_ms=100) as app:
        await app.until(lambda: is_done(fake))
        await app.stop()
        assert_exactly_once(fake, service)
        assert service.log.count("commit") == commits
        assert service.log.count("abort") == (1 if fault is Fault.UNKNOWN_ABORTED else 0)
        assert app.transform.stats.unknown == 1
        assert app.transform.stats.producers == 1


@pytest.mark.parametrize("fault", [Fault.ENDED_UNKNOWN_DONE, Fault.ENDED_UNKNOWN_LOST])
async def test_an_outcome_that_stays_unknown_is_read_from_the_groups_offsets(
    fake: FakeCluster, fault: Fault
) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(fault)
    async with client_of(fake) as client, app_of(client, service, linger_ms=100) as app:
        await app.until(lambda: is_done(fake))
        fake.append("in", 1, [b"b1"])
        await app.until(lambda: consumed(fake) == {0: 3, 1: 2})
        assert sorted(v for v in service.values() if v) == [*INPUTS, b"b1"]
        assert app.transform.stats.producers == 2
        assert "abort" not in service.log, "an abort could contradict the commit"
        (event,) = app.events_of(TransactionAborted)
        assert event.outcome_unknown


async def test_the_groups_offsets_are_waited_for_until_they_are_stable(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(Fault.ENDED_UNKNOWN_DONE)
    async with client_of(fake) as client, app_of(client, service, linger_ms=100) as app:
        service.markers_are_late = True
        await app.until(lambda: is_done(fake))
        fake.append("in", 1, [b"b1"])
        await pass_time(30)
        assert sorted(v for v in service.values() if v) == INPUTS
        service.markers_are_late = False
        fake.unstable.clear()
        await app.until(lambda: consumed(fake) == {0: 3, 1: 2})


# -- fenced --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["send", "send_offsets", "commit"])
async def test_a_successor_with_the_same_id_stops_it(fake: FakeCluster, method: str) -> None:
    service = FakeTransactions(fake)
    service.faults[method].append(Fault.FENCED)
    async with client_of(fake) as client, app_of(client, service, starts=False) as app:
        with pytest.raises(ProducerFencedError):
            await app.transform.run()
        assert service.visible == []
        assert len(service.made) == 1
        assert fake.members == {}


async def test_a_successor_during_the_commit_leaves_the_outcome_unknown(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(Fault.FENCED_UNKNOWN_DONE)
    async with client_of(fake) as client, app_of(client, service, starts=False) as app:
        with pytest.raises(TransactionOutcomeUnknownError) as raised:
            await app.transform.run()
        assert isinstance(raised.value.__cause__, ProducerFencedError)
        assert "abort" not in service.log


@pytest.mark.parametrize("fault", [Fault.FENCED, Fault.FENCED_UNKNOWN_DONE])
async def test_it_takes_over_again_if_it_is_told_to(fake: FakeCluster, fault: Fault) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(fault)
    async with (
        client_of(fake) as client,
        app_of(client, service, take_over_when_fenced=True, linger_ms=100) as app,
    ):
        await app.until(lambda: is_done(fake))
        await app.stop()
        assert_exactly_once(fake, service)
        assert app.transform.stats.producers == 2


# -- ending --------------------------------------------------------------------------------------


async def test_stop_finishes_the_transaction_that_is_open(fake: FakeCluster) -> None:
    going_on, goes_on = asyncio.Event(), asyncio.Event()

    async def handler(records: Records, outputs: Outputs) -> None:
        going_on.set()
        await goes_on.wait()
        for record in records:
            await outputs.send("out", record.value)

    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service, handler, linger_ms=100) as app:
        await going_on.wait()
        app.transform.stop()
        await pass_time(1)
        goes_on.set()
        await app.stop()
        assert_exactly_once(fake, service)
        assert fake.members == {}


async def test_stop_does_not_wait_for_records(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with (
        client_of(fake) as client,
        app_of(client, service, poll_timeout_ms=3_600_000) as app,
    ):
        await app.until(lambda: is_done(fake))
        before = asyncio.get_running_loop().time()
        await app.stop()
        assert asyncio.get_running_loop().time() - before < 1


@pytest.mark.parametrize("method", ["commit", "abort"])
async def test_stop_does_not_wait_for_a_coordinator_that_is_away(
    fake: FakeCluster, method: str
) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(Fault.ABORTED)
    service.faults["abort"].extend([Fault.TIMED_OUT] * 1_000)
    if method == "commit":
        service.faults["commit"].clear()
        service.faults["commit"].extend([Fault.UNKNOWN_LOST] * 1_000)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: service.log.count(method) > 3)
        if method == "commit":
            with pytest.raises(TransactionOutcomeUnknownError):
                await app.stop()
        else:
            await app.stop()
        assert service.visible == []
        assert fake.members == {}


async def test_stop_does_not_wait_for_a_replacement(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        service.faults["commit"].append(Fault.ENDED)
        service.faults["init"].extend([Fault.TIMED_OUT] * 1_000)
        fake.append("in", 1, [b"b1"])
        await app.until(lambda: len(service.made) > 3)
        with pytest.raises(RequestTimedOutError):
            await app.stop()


@pytest.mark.parametrize("method", ["init", *METHODS, "abort"])
async def test_a_cancellation_ends_the_transaction_and_leaves_the_group(
    fake: FakeCluster, method: str
) -> None:
    service = FakeTransactions(fake)
    service.faults[method].append(Fault.HANG)
    if method == "abort":
        service.faults["commit"].append(Fault.ABORTED)
    async with client_of(fake) as client, app_of(client, service) as app:
        await service.hanging.wait()
        assert app.running is not None
        app.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await app.running
        assert service.log[-1] == "close"
        assert service.visible == []
        assert fake.members == {}


async def test_a_cancelled_commit_whose_outcome_is_unknown_is_a_cancellation(
    fake: FakeCluster,
) -> None:
    service = FakeTransactions(fake)
    service.faults["commit"].append(Fault.CANCELLED_UNKNOWN)
    async with client_of(fake) as client, app_of(client, service, starts=False) as app:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await app.transform.run()
        assert service.log[-2:] == ["commit", "close"]


async def test_it_can_be_run_once(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    async with client_of(fake) as client, app_of(client, service) as app:
        await app.until(lambda: is_done(fake))
        with pytest.raises(IllegalStateError, match="once"):
            await app.transform
        await app.stop()


async def test_a_start_without_a_cluster_is_reported(fake: FakeCluster) -> None:
    service = FakeTransactions(fake)
    service.faults["init"].append(Fault.TIMED_OUT)
    async with client_of(fake) as client, app_of(client, service, starts=False) as app:
        with pytest.raises(RequestTimedOutError):
            await app.transform
        assert service.log == ["init", "close"]

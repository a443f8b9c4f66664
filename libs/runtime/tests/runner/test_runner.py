"""The runner: one atomic step from deciding to replaying, and nothing shown that is not on disk."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import pytest
from journal_harness import PLENTY, batch
from runner_harness import Counted, Counters, CounterSerde, Service, begin, settle, start

from semel_common.errors import (
    InvalidRequestError,
    KafkaStorageError,
    MessageTooLargeError,
    ThrottlingQuotaExceededError,
)
from semel_runtime.journal import JournalFencedError, JournalUnknownError
from semel_runtime.journal.journal_errors import JournalNewerError
from semel_runtime.machine import Result, UnknownRecordError
from semel_runtime.runner import Runner, RunnerOptions
from semel_runtime.testing.journal import MemoryJournal
from semel_runtime.testing.volume import MemoryVolume

T = TypeVar("T")


# -- the barrier -----------------------------------------------------------------------------------


async def test_answer_comes_only_after_the_sync(service: Service) -> None:
    service.volume.hold()

    add = await begin(service.add("a"))

    assert not add.done()
    assert service.machine.value("a") == 1
    service.volume.sync()
    assert await add == 1


async def test_read_waits_until_what_it_saw_is_durable(service: Service) -> None:
    service.volume.hold()
    assert not (await begin(service.add("a"))).done()

    read = await begin(service.read("a"))

    assert not read.done()
    service.volume.sync()
    assert await read == 1


async def test_error_waits_until_what_it_saw_is_durable(service: Service) -> None:
    service.volume.hold()
    assert not (await begin(service.add("a"))).done()

    refusal = await begin(service.refuse())

    assert not refusal.done()
    service.volume.sync()
    with pytest.raises(InvalidRequestError, match="there are 1 counters"):
        await refusal


async def test_read_does_not_await_anything_when_all_is_durable(service: Service) -> None:
    await service.add("a")

    call = service.read("a")

    with pytest.raises(StopIteration) as answer:
        call.send(None)
    assert answer.value.value == 1


async def test_read_during_a_commit_waits_for_the_records_queued_behind_it(
    service: Service,
) -> None:
    service.volume.hold()
    assert not (await begin(service.add("a"))).done()
    assert not (await begin(service.add("b"))).done()

    read = await begin(service.read("b"))

    service.volume.sync()
    await settle()
    assert not read.done()
    service.volume.sync()
    assert await read == 1


# -- one step --------------------------------------------------------------------------------------


async def test_concurrent_decisions_each_see_the_one_before(service: Service) -> None:
    values = await asyncio.gather(*(service.add("a") for _ in range(100)))

    assert sorted(values) == list(range(1, 101))
    assert service.machine.replayed == list(range(100))


async def test_handler_runs_and_is_replayed_before_the_first_await(service: Service) -> None:
    call = service.add("a")

    call.send(None)

    assert service.machine.value("a") == 1
    call.close()


async def test_what_queues_during_a_commit_is_one_next_commit(service: Service) -> None:
    service.volume.hold()
    first = await begin(service.add("a"))
    others = [await begin(service.add("b")) for _ in range(10)]

    service.volume.sync()
    assert await first == 1
    await settle()
    service.volume.sync()
    await asyncio.gather(*others)

    stats = service.runner.stats()
    assert (stats.commits, stats.records) == (2, 11)


async def test_refused_decision_changes_nothing(service: Service) -> None:
    with pytest.raises(InvalidRequestError):
        await service.refuse()

    assert service.runner.stats().next_offset == 0
    assert service.volume.content.records == []


async def test_record_that_cannot_be_serialized_changes_nothing(service: Service) -> None:
    bad = Result(0, [Counted("a", 1), Counted("b", {1})])  # type: ignore[arg-type]

    with pytest.raises(TypeError):
        await service.run(lambda: bad)

    assert service.machine.counters == {}
    assert await service.add("a") == 1


async def test_batches_ride_in_the_same_append(service: Service) -> None:
    one = batch(1, 0)

    await service.runner.run(lambda: service.machine.add_batch(one))

    assert await service.journal.batches.read(1, 0, max_bytes=PLENTY, upto=PLENTY) == [one]
    assert service.runner.stats().batches == 1


async def test_verified_answer_goes_through_a_commit(service: Service) -> None:
    answer: Result[int, Counted] = Result(7, verify=True)

    assert await service.run(lambda: answer) == 7

    assert service.runner.stats().commits == 1
    assert service.volume.content.records == []


async def test_deposed_owner_cannot_give_a_verified_answer(service: Service) -> None:
    await MemoryJournal(service.volume).claim("successor")
    answer: Result[int, Counted] = Result(7, verify=True)

    with pytest.raises(KafkaStorageError):
        await service.run(lambda: answer)

    assert isinstance(service.runner.failure, JournalFencedError)


async def test_listeners_hear_each_commit_once_it_is_durable(service: Service) -> None:
    service.volume.hold()
    add = await begin(service.add("a"))
    assert service.durable == []

    service.volume.sync()
    await add

    assert service.durable == [Counted("a", 1)]


# -- cancellation ----------------------------------------------------------------------------------


async def test_cancelling_a_caller_loses_only_its_waiting(service: Service) -> None:
    service.volume.hold()
    cancelled = await begin(service.add("a"))
    other = await begin(service.add("a"))

    cancelled.cancel()
    await settle()
    service.volume.release()

    assert cancelled.cancelled()
    assert await other == 2
    assert await service.read("a") == 2
    assert len(service.volume.content.records) == 2


# -- failure ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("applied", [True, False])
async def test_failed_commit_is_an_error_for_all_who_wait_and_the_end(
    service: Service, applied: bool
) -> None:
    service.volume.hold()
    calls = [await begin(call) for call in (service.add("a"), service.add("b"), service.read("a"))]
    refusal = await begin(service.refuse())
    service.volume.fail_next_write(applied=applied)

    service.volume.sync()
    await service.runner.failed.wait()

    for call in (*calls, refusal):
        with pytest.raises(KafkaStorageError):
            await call
    with pytest.raises(KafkaStorageError):
        await service.read("a")
    assert isinstance(service.runner.failure, JournalUnknownError)
    assert service.durable == []
    assert len(service.volume.content.records) == int(applied)


async def test_replay_that_breaks_an_assumption_is_the_end(service: Service) -> None:
    with pytest.raises(AssertionError, match="never negative"):
        await service.add("a", -1)

    assert service.runner.failed.is_set()
    with pytest.raises(KafkaStorageError):
        await service.add("a")
    assert service.volume.content.records == []


async def test_listener_that_fails_is_the_end_but_the_commit_was_answered(
    service: Service,
) -> None:
    def listener(_: Sequence[Counted]) -> None:
        raise LookupError

    service.runner.on_durable(listener)

    assert await service.add("a") == 1
    await service.runner.failed.wait()

    assert isinstance(service.runner.failure, LookupError)


async def test_commit_that_ends_after_a_failure_is_not_acknowledged(service: Service) -> None:
    service.volume.hold()
    add = await begin(service.add("a"))
    with pytest.raises(AssertionError):
        await service.add("a", -2)
    service.volume.sync()

    with pytest.raises(KafkaStorageError):
        await add

    await settle()
    assert service.durable == []


async def test_restart_after_lost_power_shows_only_what_was_answered(service: Service) -> None:
    assert await service.add("a") == 1
    service.volume.hold()
    lost = await begin(service.add("a"))

    service.volume.lose_unsynced()
    with pytest.raises(KafkaStorageError):
        await lost
    service.volume.release()
    successor = await start(service.volume)

    assert await successor.read("a") == 1
    await successor.runner.close()


async def test_claim_epoch_rises_with_every_start(service: Service) -> None:
    assert service.runner.claim_epoch == 1

    successor = await service.restart()

    assert successor.runner.claim_epoch == 2
    await successor.runner.close()


# -- limits ----------------------------------------------------------------------------------------


async def test_full_queue_refuses_appends_but_not_reads_and_privileged_calls() -> None:
    service = await start(options=RunnerOptions(pending_records_max=2))
    service.volume.hold()
    pending = [await begin(service.add("a")) for _ in range(2)]

    with pytest.raises(ThrottlingQuotaExceededError, match="2 records wait for the disk"):
        await service.add("a")
    read = await begin(service.read("a"))
    privileged = await begin(service.run(lambda: service.machine.add("a"), privileged=True))
    service.volume.release()

    assert await asyncio.gather(*pending, read, privileged) == [1, 2, 2, 3]
    await service.runner.close()


async def test_full_queue_is_counted_in_bytes_too() -> None:
    service = await start(options=RunnerOptions(pending_bytes_max=20))
    service.volume.hold()
    first = await begin(service.add("a"))

    with pytest.raises(ThrottlingQuotaExceededError, match="8 bytes wait for the disk"):
        await service.add("abcdefgh")
    service.volume.release()

    assert await first == 1
    assert await service.add("abcdefgh") == 1
    await service.runner.close()


async def test_decision_that_fits_in_no_append_is_refused() -> None:
    service = await start(options=RunnerOptions(decision_bytes_max=100, commit_batches_max=1))
    result = Result(0, [Counted("a", 1)], [batch(1, 0), batch(1, 10)])

    with pytest.raises(MessageTooLargeError, match="2 batches in one call are over 1"):
        await service.run(lambda: result)
    with pytest.raises(MessageTooLargeError, match="bytes in one call are over 100"):
        await service.add("a" * 101)

    assert service.machine.counters == {}
    await service.runner.close()


async def test_what_does_not_fit_in_one_commit_is_the_next() -> None:
    service = await start(options=RunnerOptions(commit_bytes_max=30))
    service.volume.hold()
    calls = [await begin(service.add("abc")) for _ in range(7)]

    service.volume.release()
    await asyncio.gather(*calls)

    stats = service.runner.stats()
    assert (stats.records, stats.commits) == (7, 3)
    assert (await service.restart()).machine.value("abc") == 7


async def test_decision_that_is_larger_than_a_commit_has_one_of_its_own() -> None:
    """No caller can cut it in two."""
    service = await start(options=RunnerOptions(commit_bytes_max=30))
    service.volume.hold()
    keys = ["a", "b", "x" * 100, "c", "d"]
    calls = [await begin(service.add(key)) for key in keys]

    service.volume.release()
    await asyncio.gather(*calls)

    assert service.runner.stats().commits == 4, "the first was under way already"
    machine = (await service.restart()).machine
    assert [machine.value(key) for key in keys] == [1] * 5


# -- closing ---------------------------------------------------------------------------------------


async def test_close_finishes_decided_records_and_refuses_later_ones() -> None:
    service = await start()
    service.volume.hold()
    add = await begin(service.add("a"))
    close = await begin(service.runner.close())
    assert not close.done()

    with pytest.raises(KafkaStorageError, match="closed"):
        await service.add("a")
    service.volume.release()
    await close

    assert await add == 1


async def test_close_after_a_failure_is_quiet(service: Service) -> None:
    service.volume.fail_next_write(applied=False)
    with pytest.raises(KafkaStorageError):
        await service.add("a")

    await service.runner.close()
    await service.runner.close()


async def test_runner_is_a_context_manager() -> None:
    service = await start()

    async with service.runner:
        await service.add("a")

    with pytest.raises(KafkaStorageError):
        await service.add("a")


async def test_given_token_claims_the_journal(service: Service) -> None:
    journal = MemoryJournal(service.volume)

    runner = await Runner.open(journal, Counters(), CounterSerde(), token="mine")

    assert service.volume.content.token == "mine"
    await runner.close()


async def test_a_record_of_a_newer_release_is_an_error_that_says_so() -> None:
    class Older:
        def encode(self, record: Counted) -> bytes:
            return CounterSerde().encode(record)

        def decode(self, data: bytes) -> Counted:
            raise UnknownRecordError(repr(data))

    service = await start(MemoryVolume())
    await service.add("a")
    await service.runner.close()
    with pytest.raises(JournalNewerError, match="offset 0, of a kind that this release does not"):
        await Runner.open(MemoryJournal(service.volume), Counters(), Older())

"""No call waits for ever for the offsets of a transaction without an end (protocol.md, 6)."""

from group_harness import PRODUCER_ID
from group_service import (
    ABORTED,
    COMMIT,
    COMMITTED,
    OPEN,
    Coordinators,
    GroupService,
    cluster_in_memory,
    running,
)

from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.errors import NotCoordinatorError
from semel_common.ids import transaction_log_partition_of
from semel_runtime.testing.network import Fault, MemoryNetwork
from semel_runtime.testing.virtual_time import after, in_virtual_time
from semel_runtime.testing.volume import MemoryVolume

OTHER_PRODUCER_ID = (8 << 48) | 1
UNSTABLE = "1 open transactions may move partition 0 of topic 'orders'"

LATER = transactions.InquiryAnswer(outcome=transactions.INQUIRY_OUTCOME_LATER)


def epochs(service: GroupService) -> list[int]:
    return [epoch for _, epoch in service.coordinators.inquiries]


@in_virtual_time
async def test_a_transaction_is_asked_about_after_the_interval() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.answer = lambda _: COMMITTED
        await service.txn_commit({0: 8})
        await after(9_900)
        assert service.coordinators.inquiries == []
        await after(300)
        owner = transaction_log_partition_of(PRODUCER_ID) % 2
        assert service.coordinators.inquiries == [(owner, 0)]
        assert await service.fetch(0, require_stable=True) == [8]


@in_virtual_time
async def test_a_transaction_that_goes_on_is_asked_about_again_after_the_interval() -> None:
    async with cluster_in_memory() as service:
        await service.txn_commit({0: 8})
        await after(31_000)
        assert 3 <= len(service.coordinators.inquiries) <= 4


@in_virtual_time
async def test_a_transaction_about_to_time_out_is_asked_about_again_then() -> None:
    async with cluster_in_memory() as service:
        answers = iter([2_000, 1_000])
        service.coordinators.answer = lambda _: (
            transactions.InquiryAnswer(
                outcome=transactions.INQUIRY_OUTCOME_ONGOING, time_left_ms=left
            )
            if (left := next(answers, 0))
            else ABORTED
        )
        await service.txn_commit({0: 8})
        await after(13_500)
        assert epochs(service) == [0, 0, 0]
        assert await service.fetch(0, require_stable=True) == [-1]


@in_virtual_time
async def test_a_reader_of_stable_offsets_does_not_wait_for_the_interval() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.answer = lambda _: ABORTED
        await service.txn_commit({0: 8})
        assert await service.fetch(0, require_stable=True) == [UNSTABLE]
        await after(10)
        assert await service.fetch(0, require_stable=True) == [-1]


@in_virtual_time
async def test_a_reader_that_waits_and_asks_all_the_time_makes_few_inquiries() -> None:
    async with cluster_in_memory() as service:
        await service.txn_commit({0: 8})
        for _ in range(100):
            await service.fetch(0, require_stable=True)
            await after(10)
        assert 2 <= len(service.coordinators.inquiries) <= 8


@in_virtual_time
async def test_a_superseded_transaction_is_asked_about_soon() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.answer = lambda each: OPEN if each.producer_epoch else COMMITTED
        await service.txn_commit({0: 8}, epoch=0)
        await service.txn_commit({0: 9}, epoch=1)
        await after(600)
        assert epochs(service) == [0]
        assert await service.fetch(0) == [8]


@in_virtual_time
async def test_markers_that_arrive_soon_make_no_inquiries() -> None:
    async with cluster_in_memory() as service:
        for epoch in range(20):
            await service.txn_commit({0: epoch}, epoch=epoch)
            await after(50)
            if epoch:
                await service.marker(COMMIT, epoch=epoch - 1)
        assert service.coordinators.inquiries == []


@in_virtual_time
async def test_transactions_open_at_a_restart_are_asked_about() -> None:
    coordinators, volume = Coordinators(MemoryNetwork()), MemoryVolume()
    coordinators.serve()
    async with running(coordinators, volume) as first:
        await first.txn_commit({0: 8})
    coordinators.answer = lambda _: COMMITTED
    async with running(coordinators, volume) as second:
        await after(10_500)
        assert await second.fetch(0, require_stable=True) == [8]
    await coordinators.network.close()


@in_virtual_time
async def test_a_coordinator_that_cannot_say_is_asked_again() -> None:
    async with cluster_in_memory() as service:
        answers = iter([LATER, LATER])
        service.coordinators.answer = lambda _: next(answers, COMMITTED)
        await service.txn_commit({0: 8})
        await after(11_500)
        assert epochs(service) == [0, 0, 0]
        assert await service.fetch(0, require_stable=True) == [8]


@in_virtual_time
async def test_a_coordinator_that_refuses_is_asked_again() -> None:
    async with cluster_in_memory() as service:
        refusals = iter([NotCoordinatorError("not me"), None])

        def answer(_: transactions.Inquiry) -> transactions.InquiryAnswer:
            refusal = next(refusals, None)
            if refusal is not None:
                raise refusal
            return COMMITTED

        service.coordinators.answer = answer
        await service.txn_commit({0: 8})
        await after(11_500)
        assert await service.fetch(0, require_stable=True) == [8]


@in_virtual_time
async def test_a_lost_answer_is_asked_for_again() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.answer = lambda _: COMMITTED
        await service.txn_commit({0: 8})
        faults = iter([Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
        service.network.decide = lambda _address, method, _request: (
            next(faults, Fault.NONE) if method.name == "InquireTransactions" else Fault.NONE
        )
        await after(11_500)
        assert await service.fetch(0, require_stable=True) == [8]


@in_virtual_time
async def test_a_silent_coordinator_holds_up_only_its_own_transactions() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.silent = {transaction_log_partition_of(PRODUCER_ID) % 2}
        service.coordinators.answer = lambda _: ABORTED
        await service.txn_commit({0: 8})
        assert await service.fetch(0, require_stable=True) == [UNSTABLE]
        await after(10)
        await service.txn_commit({1: 8}, producer_id=OTHER_PRODUCER_ID)
        await service.fetch(1, require_stable=True)
        await after(10)
        assert await service.fetch(0, 1, require_stable=True) == [UNSTABLE, -1]
        await after(1_000)
        assert len(service.coordinators.inquiries) == 2


@in_virtual_time
async def test_an_epoch_that_was_never_given_is_closed() -> None:
    async with cluster_in_memory() as service:
        service.coordinators.answer = lambda _: transactions.InquiryAnswer(
            outcome=transactions.INQUIRY_OUTCOME_NEVER_GIVEN, coordinator_epoch=1, current_epoch=3
        )
        await service.txn_commit({0: 99}, epoch=100)
        await after(10_500)
        assert await service.fetch(0, require_stable=True) == [-1]
        await service.txn_commit({0: 8}, epoch=3)


@in_virtual_time
async def test_the_answer_that_comes_after_the_marker_changes_nothing() -> None:
    async with cluster_in_memory() as service:
        await service.txn_commit({0: 8})
        service.coordinators.answer = lambda _: ABORTED
        await service.fetch(0, require_stable=True)
        await service.marker(COMMIT)
        await after(1_000)
        assert await service.fetch(0, require_stable=True) == [8]

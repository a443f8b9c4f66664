"""The loop that asks coordinators, so that no partition hangs on a transaction."""

import pytest
from broker_harness import CLUSTER_ID, ORDERS, OTHER, PRODUCER
from broker_service import COMMIT, Broker, Coordinators, batch, marker, serving

from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_runtime.testing.network import MemoryNetwork
from semel_runtime.testing.volume import MemoryVolume

INTERVAL_MS = 10_000


def answering(
    outcome: transactions.InquiryOutcome.ValueType, time_left_ms: int = 0
) -> transactions.InquiryAnswer:
    return transactions.InquiryAnswer(
        outcome=outcome, coordinator_epoch=1, time_left_ms=time_left_ms
    )


@pytest.mark.parametrize(
    ("outcome", "visible"),
    [
        pytest.param(transactions.INQUIRY_OUTCOME_COMMITTED, 1, id="committed"),
        pytest.param(transactions.INQUIRY_OUTCOME_ABORTED, 0, id="aborted"),
        pytest.param(transactions.INQUIRY_OUTCOME_NEVER_GIVEN, 0, id="never given"),
    ],
)
async def test_a_decided_transaction_gets_its_outcome(
    broker: Broker, outcome: transactions.InquiryOutcome.ValueType, visible: int
) -> None:
    broker.coordinators.answer = lambda _: answering(outcome)
    await broker.produce(batch(b"one"))
    await broker.inquire()
    assert broker.coordinators.inquiries == []
    broker.clock.advance(INTERVAL_MS)
    await broker.inquire()
    result = await broker.fetch()
    assert (result.last_stable_offset, len(result.batches)) == (2, visible)


async def test_all_that_is_due_at_a_coordinator_goes_into_one_request(broker: Broker) -> None:
    """Producer 3 belongs to coordinator 1, producer 4 to coordinator 0."""
    for partition in (0, 1):
        await broker.produce(batch(b"one", producer_id=PRODUCER), partition=partition)
        await broker.produce(batch(b"one", producer_id=OTHER), partition=partition)
    broker.clock.advance(INTERVAL_MS)
    await broker.inquire()
    asked = {request.inquiries[0].producer_id: request for request in broker.coordinators.inquiries}
    assert asked.keys() == {PRODUCER, OTHER}
    for request in asked.values():
        assert request.cluster_id == CLUSTER_ID
        named = [inquiry.participant.topic_partition for inquiry in request.inquiries]
        assert [(each.topic_id, each.partition) for each in named] == [(ORDERS, 0), (ORDERS, 1)]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answering(transactions.INQUIRY_OUTCOME_LATER), id="later"),
        pytest.param(
            answering(transactions.INQUIRY_OUTCOME_ONGOING, time_left_ms=60_000), id="ongoing"
        ),
    ],
)
async def test_an_undecided_transaction_is_not_asked_about_again_at_once(
    broker: Broker, answer: transactions.InquiryAnswer
) -> None:
    broker.coordinators.answer = lambda _: answer
    await broker.produce(batch(b"one"))
    broker.clock.advance(INTERVAL_MS)
    for _ in range(3):
        await broker.inquire()
    assert len(broker.coordinators.inquiries) == 1
    assert (await broker.fetch()).last_stable_offset == 0


async def test_an_older_epoch_is_asked_about_soon_after_a_newer_one_was_seen(
    broker: Broker,
) -> None:
    broker.coordinators.answer = lambda _: answering(transactions.INQUIRY_OUTCOME_ABORTED)
    await broker.produce(batch(b"dead", epoch=0))
    await broker.produce(batch(b"alive", epoch=1))
    broker.clock.advance(250)
    await broker.inquire()
    (request,) = broker.coordinators.inquiries
    assert [inquiry.producer_epoch for inquiry in request.inquiries] == [0]
    assert (await broker.fetch()).last_stable_offset == 1


async def test_the_answer_of_a_deposed_coordinator_is_not_applied(broker: Broker) -> None:
    newer = marker(COMMIT, epoch=7, producer_id=PRODUCER + 1, coordinator_epoch=5)
    await broker.mark(newer)
    broker.coordinators.answer = lambda _: answering(transactions.INQUIRY_OUTCOME_COMMITTED)
    await broker.produce(batch(b"one"))
    broker.clock.advance(INTERVAL_MS)
    await broker.inquire()
    assert (await broker.fetch()).last_stable_offset == 0


async def test_the_loop_ends_what_a_process_before_left_open(volume: MemoryVolume) -> None:
    async with serving(volume) as broker:
        await broker.produce(batch(b"one"))
    coordinators = Coordinators(MemoryNetwork())
    coordinators.answer = lambda _: answering(transactions.INQUIRY_OUTCOME_COMMITTED)
    async with serving(
        volume,
        coordinators=coordinators,
        superseded_inquiry_delay_ms=1,
        transaction_inquiry_interval_ms=1,
    ) as broker:
        broker.clock.advance(INTERVAL_MS)
        result = await broker.fetch(max_wait_ms=30_000)
        assert len(result.batches) == 1

"""A client vanishes at every step, every message is lost once, epochs are made up."""

import asyncio
import gc
from collections.abc import Iterator
from itertools import count

import pytest

from aiosemel import (
    ConsumerGroupMetadata,
    ProducerOptions,
    SemelClient,
    TopicPartition,
    TransactionAbortedError,
    TransactionalProducer,
)
from aiosemel._cluster.retry import Deadline
from hanging.stage import (
    INTERVAL_MS,
    REQUEST_TIMEOUT_MS,
    SLACK_MS,
    TIMEOUT_MS,
    Case,
    Nth,
    Play,
    Stage,
    StageLoop,
    Wrong,
    a_stage,
)
from semel.broker.v1 import broker_pb2 as broker
from semel.common.v1.records_pb2 import Record
from semel.group.v1 import group_pb2 as group
from semel_common.ids import TopicPartition as Place
from semel_common.wire import methods

pytestmark = pytest.mark.slow

VANISHED_MS = INTERVAL_MS + TIMEOUT_MS + SLACK_MS
"""By then all is closed: a participant asks, and a time-out that begins then comes to its end."""
LOST_MS = VANISHED_MS + REQUEST_TIMEOUT_MS
OPTIONS = ProducerOptions(
    request_timeout_ms=300,
    delivery_timeout_ms=3_000,
    max_block_ms=3_000,
    transaction_timeout_ms=TIMEOUT_MS,
)
REGISTRATIONS = frozenset({methods.ADD_PARTITIONS_TO_TXN.name, methods.ADD_OFFSETS_TO_TXN.name})
_numbers = count(1)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with a_stage() as made:
        yield made


def test_garbage_of_earlier_tests_does_not_come_back_after_a_stage() -> None:
    """It would complain in the middle of whichever test runs next."""
    with a_stage():
        pass
    frozen = gc.get_freeze_count()
    with a_stage():
        pass
    assert gc.get_freeze_count() >= frozen > 0


async def transact(client: SemelClient) -> None:
    """Write to two brokers and a group, some of it twice, and commit."""
    number = next(_numbers)
    producer = client.transactional_producer(f"id-{number}", options=OPTIONS)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("a", b"one", partition=0)
    await (await producer.send("a", b"two", partition=1))
    await (await producer.send("a", b"three", partition=0))
    group_metadata = ConsumerGroupMetadata(group_id=f"group-{number}")
    for offset in (1, 2):
        await producer.send_offsets({TopicPartition("in", 0): offset}, group_metadata)
    await producer.commit()


async def abort(client: SemelClient) -> None:
    """Write to two brokers, and abort."""
    producer = client.transactional_producer(f"id-{next(_numbers)}", options=OPTIONS)
    await producer.init_transactions()
    await producer.begin_transaction()
    for partition in (0, 1):
        await (await producer.send("a", b"one", partition=partition))
    await producer.abort()


async def take_over(client: SemelClient) -> None:
    """Write, and let a second instance take the id over, write as well and commit."""
    transactional_id = f"id-{next(_numbers)}"
    first, second = (
        client.transactional_producer(transactional_id, options=OPTIONS) for _ in range(2)
    )
    for producer in (first, second):
        await producer.init_transactions(wait_until_visible=False)
        await producer.begin_transaction()
        await (await producer.send("a", b"value", partition=0))
    await second.commit()


async def write_and_vanish(client: SemelClient) -> None:
    """Write the same, and never say how it ends."""
    number = next(_numbers)
    producer = client.transactional_producer(f"id-{number}", options=OPTIONS)
    await producer.init_transactions()
    await producer.begin_transaction()
    for partition in (0, 1):
        await (await producer.send("a", b"one", partition=partition))
    offsets = {TopicPartition("in", 0): number}
    await producer.send_offsets(offsets, ConsumerGroupMetadata(group_id=f"group-{number}"))
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StageLoop)
    await loop.vanish()


@pytest.mark.parametrize("registers", [True, False])
@pytest.mark.parametrize("play", [transact, abort, take_over])
def test_a_client_may_vanish_at_every_step(stage: Stage, play: Play, registers: bool) -> None:
    always_loses = frozenset() if registers else REGISTRATIONS

    async def play_all() -> int:
        for step in count():
            case = await stage.play(play, Wrong(dies_at=step, always_loses=always_loses))
            await stage.settled(case, VANISHED_MS)
            if case.finished:
                return step
        raise AssertionError

    assert stage.loop.run_until_complete(play_all()) > 10


@pytest.mark.parametrize(
    ("play", "always_loses"),
    [
        pytest.param(transact, frozenset(), id="of a commit"),
        pytest.param(abort, frozenset(), id="of an abort"),
        pytest.param(take_over, frozenset(), id="of a successor"),
        pytest.param(write_and_vanish, frozenset(), id="after the client vanished"),
        pytest.param(write_and_vanish, REGISTRATIONS, id="after it vanished unregistered"),
    ],
)
def test_every_message_may_be_lost_once(
    stage: Stage, play: Play, always_loses: frozenset[str]
) -> None:
    lost = stage.loop.run_until_complete(lose_each(stage, play, always_loses))
    assert {"request of Produce", "answer of Produce"} <= lost
    if play is not write_and_vanish:
        assert {"request of EndTxn", "answer of EndTxn"} <= lost
        assert {"request of WriteTxnMarkers", "answer of WriteTxnMarkers"} <= lost
    elif always_loses:
        assert {"request of InquireTransactions", "answer of InquireTransactions"} <= lost


async def lose_each(stage: Stage, play: Play, always_loses: frozenset[str]) -> set[str]:
    """Play a case in which nothing is lost, then one for each message of it; return the kinds."""

    async def lose(nth: Nth | None) -> Case:
        case = await stage.play(play, Wrong(loses=nth, always_loses=always_loses))
        await stage.settled(case, LOST_MS)
        assert case.finished is (play is not write_and_vanish), case
        return case

    whole = await lose(None)
    for kind, messages in sorted(whole.messages.items()):
        for number in range(messages):
            case = await lose(Nth(kind, number))
            # How often participants ask depends on when they asked last, in the case before.
            assert case.has_lost or (number and "Inquire" in kind), case
    return set(whole.messages)


@pytest.mark.parametrize("epochs_ahead", [1, 2, 1_000])
def test_an_epoch_that_was_never_given_out_is_closed(stage: Stage, epochs_ahead: int) -> None:
    async def play(client: SemelClient) -> None:
        number = next(_numbers)
        producer = client.transactional_producer(f"id-{number}", options=OPTIONS)
        await producer.init_transactions()
        manager = producer._transactions.manager
        await make_up(client, manager.producer_id, manager.producer_epoch + epochs_ahead, number)

    lost = stage.loop.run_until_complete(lose_each(stage, play, frozenset()))
    assert {"request of InquireTransactions", "answer of InquireTransactions"} <= lost


def test_an_epoch_that_was_made_up_locks_no_real_one_out(stage: Stage) -> None:
    """Whether the current epoch has written there before is forgotten: the next one may write."""

    async def play(client: SemelClient) -> None:
        number = next(_numbers)
        producer = client.transactional_producer(f"id-{number}", options=OPTIONS)
        await producer.init_transactions()
        manager = producer._transactions.manager
        # A producer that knows of no expiration keeps its epoch while it is idle.
        producer._transactions._renewal.identified(0)
        await make_up(client, manager.producer_id, manager.producer_epoch + 5, number)
        while stage.open_things():
            await client._context.cluster.pause(1)
        with pytest.raises(TransactionAbortedError):
            await send_and_commit(producer)
        await producer.abort()
        await send_and_commit(producer)

    async def send_and_commit(producer: TransactionalProducer) -> None:
        await producer.begin_transaction()
        await producer.send("a", b"real", partition=0)
        await producer.commit(wait_until_visible=True)

    async def play_once() -> None:
        case = await stage.play(play, Wrong())
        assert case.finished, case
        await stage.settled(case, VANISHED_MS)

    stage.loop.run_until_complete(play_once())


@pytest.mark.parametrize("counter", [1_000, 1])
def test_a_producer_id_that_has_no_transactions_is_closed(stage: Stage, counter: int) -> None:
    """One that was never given out, and one that was given out for idempotent sends."""

    async def play(client: SemelClient) -> None:
        number = next(_numbers)
        if counter == 1:
            producer = client.producer()
            await (await producer.send("b", b"plain", partition=0))
        await make_up(client, counter, 0, number)

    async def play_once() -> None:
        case = await stage.play(play, Wrong())
        assert case.finished, case
        await stage.settled(case, VANISHED_MS)
        assert stage.outcomes((counter, 0)) <= {False}

    stage.loop.run_until_complete(play_once())


async def make_up(client: SemelClient, producer_id: int, producer_epoch: int, number: int) -> None:
    """Write to a partition and a group in an epoch that no coordinator has given out."""
    cluster, deadline = client._context.cluster, Deadline.after_ms(3_000)
    topic_id = (await cluster.cache.topic("a", deadline)).topic_id
    records = broker.PlainRecords(
        records=[Record(value=b"made up")],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )
    place = broker.ProducePartition(topic_id=topic_id, partition=0, records=records)
    produced = await cluster.call(
        cluster.leader_of(Place(topic_id, 0)),
        methods.PRODUCE,
        broker.ProduceRequest(partitions=[place]),
        deadline=deadline,
        request_timeout_ms=300,
    )
    assert not produced.partitions[0].HasField("error"), produced
    partitions = [group.OffsetCommitPartition(partition=0, committed_offset=1)]
    await cluster.call(
        cluster.group_coordinator_of(f"group-{number}"),
        methods.TXN_OFFSET_COMMIT,
        group.TxnOffsetCommitRequest(
            transactional_id=f"id-{number}",
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            group_id=f"group-{number}",
            member_epoch=-1,
            topics=[group.OffsetCommitTopic(topic_id=topic_id, partitions=partitions)],
        ),
        deadline=deadline,
        request_timeout_ms=300,
    )

"""The producer without transactions when something fails: each record is stored once."""

import asyncio

import pytest
from network_faults import Hold, LoseReply, LoseRequest, Refuse, RefusePartition
from producer_harness import FakeCluster, elapse, open_client, values

from aiosemel import ClientOptions, Delivery, ProducerOptions
from aiosemel.errors import (
    ApplicationRecoverableError,
    InvalidRecordError,
    InvalidRequestError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    SemelError,
    ThrottlingQuotaExceededError,
    TransactionAbortedError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel.broker.v1.broker_pb2 import ProduceRequest, ProduceResponse
from semel.coordinator.v1.cluster_pb2 import MetadataRequest
from semel.coordinator.v1.transactions_pb2 import InitProducerIdRequest


@pytest.mark.parametrize("fault", [LoseReply(), LoseRequest()])
async def test_a_send_that_is_lost_is_stored_once(
    fake: FakeCluster, fault: LoseReply | LoseRequest
) -> None:
    fake.then("Produce", fault)
    async with open_client(fake) as client:
        stored = await client.producer().send_and_wait("t", b"v", partition=0)
    assert stored.offset == 0
    assert fake.stored("t", 0) == [b"v"]
    assert len(fake.asked(ProduceRequest)) == 2


@pytest.mark.parametrize(
    "error",
    [
        KafkaStorageError("x"),
        ThrottlingQuotaExceededError("x"),
        NotLeaderOrFollowerError("x"),
        UnknownTopicOrPartitionError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_retriable_errors_are_retried(fake: FakeCluster, error: SemelError) -> None:
    fake.then("Produce", RefusePartition(error), Refuse(error))
    async with open_client(fake) as client:
        await client.producer().send_and_wait("t", b"v", partition=0)
    first, second, third = fake.asked(ProduceRequest)
    assert first == second == third, "a retry is not what it was"


async def test_order_survives_losses_of_several_batches_in_flight(fake: FakeCluster) -> None:
    faults = (LoseReply(), None, LoseRequest(), LoseReply(), None, LoseRequest())
    async with open_client(fake) as client:
        producer = client.producer(ProducerOptions(batch_size_bytes=500))
        await producer.send_and_wait("t", b"first", partition=0)
        fake.then("Produce", *faults)
        sent = values(200, size=50)
        for value in sent:
            await producer.send("t", value, partition=0)
        await producer.flush()
    assert fake.stored("t", 0) == [b"first", *sent]


async def test_a_broker_that_moved_is_found_again(fake: FakeCluster) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"1", partition=0)
        fake.moved[0] = "elsewhere"
        fake.version += 1
        await producer.send_and_wait("t", b"2", partition=0)
    assert fake.stored("t", 0) == [b"1", b"2"]


async def test_a_leader_that_is_not_known_is_looked_for() -> None:
    fake = FakeCluster()
    fake.create_topic("t")
    fake.log("t").leader = 1
    async with open_client(fake) as client:
        sending = asyncio.create_task(client.producer().send_and_wait("t", b"v"))
        await elapse(1)
        assert not sending.done()
        fake.brokers = 2
        fake.version += 1
        assert (await sending).offset == 0


async def test_metadata_that_has_grown_old_is_asked_for_again(fake: FakeCluster) -> None:
    async with open_client(fake, ClientOptions(metadata_max_age_ms=1_000)) as client:
        producer = client.producer()
        for _ in range(3):
            await producer.send_and_wait("t", b"v", partition=0)
            await elapse(2)
    assert len(fake.asked(MetadataRequest)) == 3


async def test_a_refused_batch_fails_its_deliveries_and_the_next_goes_on(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"1", partition=0)
        fake.then("Produce", RefusePartition(InvalidRecordError("bad")))
        delivery = await producer.send("t", b"2", partition=0)
        with pytest.raises(InvalidRecordError, match="bad"):
            await delivery
        with pytest.raises(InvalidRecordError, match="bad"):
            delivery.result()
        stored = await producer.send_and_wait("t", b"3", partition=0)
    assert stored.offset == 1
    epochs = [batch.producer_epoch for batch in fake.log("t", 0).batches]
    assert epochs == [0, 1], "a gap needs an epoch of its own"


async def test_every_delivery_raises_an_error_of_its_own(fake: FakeCluster) -> None:
    fake.then("Produce", RefusePartition(InvalidRecordError("bad")))
    async with open_client(fake) as client:
        producer = client.producer()
        deliveries = [await producer.send("t", b"v", partition=0) for _ in range(2)]
        raised = await asyncio.gather(*(_wait(d) for d in deliveries))
    assert [type(error) for error in raised] == [InvalidRecordError] * 2
    assert raised[0] is not raised[1]


async def _wait(delivery: Delivery) -> SemelError | None:
    try:
        await delivery
    except SemelError as error:
        return error
    return None


async def test_a_record_is_given_up_after_delivery_timeout_ms(fake: FakeCluster) -> None:
    fake.then("Produce", *[LoseRequest()] * 1_000)
    options = ProducerOptions(request_timeout_ms=1_000, delivery_timeout_ms=3_000)
    async with open_client(fake) as client:
        producer = client.producer(options)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimedOutError, match=r"not acknowledged in 3000 ms, sent \d"):
            await producer.send_and_wait("t", b"v")
        assert asyncio.get_running_loop().time() - begun == pytest.approx(3, abs=0.1)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("waited_s", [n / 1_000 for n in range(1, 60, 2)])
async def test_a_record_is_given_up_whenever_it_was_sent(
    fake: FakeCluster, waited_s: float
) -> None:
    """Times in milliseconds and in seconds need not be the same to the last bit."""
    fake.then("Produce", *[LoseRequest()] * 1_000)
    options = ProducerOptions(request_timeout_ms=1_000, delivery_timeout_ms=1_000)
    async with open_client(fake) as client:
        producer = client.producer(options)
        await elapse(waited_s)
        with pytest.raises(RequestTimedOutError):
            await producer.send_and_wait("t", b"v")


async def test_a_hanging_broker_is_given_up_after_request_timeout_ms(fake: FakeCluster) -> None:
    fake.then("Produce", Hold(asyncio.Event()))
    async with open_client(fake) as client:
        begun = asyncio.get_running_loop().time()
        producer = client.producer(ProducerOptions(request_timeout_ms=2_000))
        await producer.send_and_wait("t", b"v")
        assert asyncio.get_running_loop().time() - begun == pytest.approx(2, abs=0.3)


async def test_a_batch_behind_a_gap_is_stored_in_a_new_epoch(fake: FakeCluster) -> None:
    """The first of two batches expires: the second can never be stored under its sequence."""
    options = ProducerOptions(
        request_timeout_ms=1_000, delivery_timeout_ms=1_000, batch_size_bytes=100
    )
    released = asyncio.Event()
    async with open_client(fake) as client:
        producer = client.producer(options)
        await producer.send_and_wait("t", b"0", partition=0)
        fake.then("Produce", Hold(released), None)
        first = await producer.send("t", bytes(100), partition=0)
        await elapse(0.5)
        second = await producer.send("t", bytes(100), partition=0)
        with pytest.raises(RequestTimedOutError):
            await first
        assert (await second).offset == 1
        assert (await producer.send_and_wait("t", b"3", partition=0)).offset == 2
    assert fake.stored("t", 0) == [b"0", bytes(100), b"3"]
    assert [batch.producer_epoch for batch in fake.log("t", 0).batches] == [0, 1, 1]


async def test_a_wrong_number_of_answers_is_a_defect_of_the_broker(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        delivery = await producer.send("t", b"v")
        monkeypatch.setattr(fake, "_produce", lambda *_: ProduceResponse())
        with pytest.raises(SemelError, match="number of partitions 0, which is not 1"):
            await delivery


async def test_a_defect_of_the_sender_is_told_to_everybody(
    fake: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("aiosemel._producer.sending.sender.produce_request", broken)
    async with open_client(fake) as client:
        producer = client.producer()
        with pytest.raises(UnknownServerError, match="ended by a bug"):
            await producer.send_and_wait("t", b"v")
        with pytest.raises(ApplicationRecoverableError, match="ended by a bug"):
            await producer.send("t", b"v")


async def test_without_a_producer_id_records_wait(fake: FakeCluster) -> None:
    fake.then("InitProducerId", LoseRequest(), Refuse(KafkaStorageError("x")))
    async with open_client(fake) as client:
        assert (await client.producer().send_and_wait("t", b"v")).offset == 0
    asked = fake.asked(InitProducerIdRequest)
    assert len(asked) == 3
    assert not asked[0].HasField("transactional_id")


async def test_without_any_producer_id_the_producer_is_done(fake: FakeCluster) -> None:
    fake.then("InitProducerId", Refuse(InvalidRequestError("no")))
    async with open_client(fake) as client:
        producer = client.producer()
        delivery = await producer.send("t", b"v")
        with pytest.raises(InvalidRequestError, match="no"):
            await delivery
        with pytest.raises(ApplicationRecoverableError, match="closed: no"):
            await producer.send("t", b"v")


async def test_a_send_to_a_deleted_topic_fails_at_once_and_the_next_goes_to_its_successor(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.producer()
        await producer.send_and_wait("t", b"before", partition=0)
        fake.recreate_topic("t")
        started = asyncio.get_running_loop().time()
        with pytest.raises(UnknownTopicIdError, match="topic 't' was deleted") as refused:
            await producer.send_and_wait("t", b"lost", partition=0)
        assert asyncio.get_running_loop().time() - started < 1
        assert refused.value.details["topic"] == "t"
        stored = await producer.send_and_wait("t", b"after", partition=0)
    assert stored.offset == 0
    assert fake.stored("t", 0) == [b"after"]


async def test_a_transaction_that_writes_to_a_deleted_topic_aborts_and_the_next_one_goes_on(
    fake: FakeCluster,
) -> None:
    async with open_client(fake) as client:
        producer = client.transactional_producer("orders")
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send("t", b"before", partition=0)
        fake.recreate_topic("t")
        with pytest.raises(TransactionAbortedError, match="was deleted"):
            async with producer.transaction():
                await producer.send("t", b"lost", partition=0)
        async with producer.transaction():
            await producer.send("t", b"after", partition=0)
    assert fake.visible("t", 0) == [b"after"]

"""Topics that take small batches: what is cut before it is sent, and what after a refusal."""

from producer_harness import FakeCluster, open_client, values

from aiosemel import SemelClient
from semel.broker.v1.broker_pb2 import ProduceRequest

LIMIT_BYTES = 2_000


def limit(fake: FakeCluster, *, metadata_says_so: bool) -> None:
    for partition in range(4):
        fake.log("t", partition).max_message_bytes = LIMIT_BYTES
    if metadata_says_so:
        fake.configs["t"] = {"max.message.bytes": str(LIMIT_BYTES)}


async def send_twice(client: SemelClient) -> list[bytes]:
    sent = [*values(100, size=100)]
    async with client.producer() as producer:
        for half in (sent[:50], sent[50:]):
            await (await producer.send_columns("t", half, partition=0))
    return sent


async def test_no_batch_is_refused_for_a_limit_that_metadata_says(fake: FakeCluster) -> None:
    limit(fake, metadata_says_so=True)
    async with open_client(fake) as client:
        sent = await send_twice(client)
    assert fake.stored("t", 0) == sent
    assert len(fake.asked(ProduceRequest)) == len(fake.log("t", 0).batches)


async def test_a_limit_that_a_refusal_says_is_known_from_then_on(fake: FakeCluster) -> None:
    limit(fake, metadata_says_so=False)
    async with open_client(fake) as client:
        sent = await send_twice(client)
    assert fake.stored("t", 0) == sent
    assert len(fake.asked(ProduceRequest)) == len(fake.log("t", 0).batches) + 1


async def test_each_record_of_a_batch_that_was_cut_knows_where_it_is(fake: FakeCluster) -> None:
    limit(fake, metadata_says_so=False)
    async with open_client(fake) as client, client.producer() as producer:
        sent = [await producer.send("t", value, partition=0) for value in values(50, size=100)]
        assert [(await each).offset for each in sent] == [*range(50)]
        pieces = await (await producer.send_columns("t", values(50, size=100), partition=0))
    at = 50
    for piece in pieces:
        assert piece.base_offset == at
        at += piece.record_count
    assert at == 100

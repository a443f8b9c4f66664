"""The recorded history of a producer that gives up before it has sent a request."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
from semel_checker.history import Event, Recorder, Returned
from semel_checker.names import Outcome

from aiosemel import ProducerOptions, SemelClient
from aiosemel.errors import UnknownTopicOrPartitionError
from semel_local import LocalCluster
from simulation.recorded import RecordedClient, RecordedProducer, Records


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(now_ms=lambda: 0)


@pytest.fixture
async def producer(recorder: Recorder) -> AsyncIterator[RecordedProducer]:
    """A producer that has committed one record."""
    async with LocalCluster() as cluster, SemelClient(cluster.bootstrap) as client:
        await client.admin().create_topic("orders", partitions=1)
        recorded = RecordedClient(client, Records(recorder, count()), "writer")
        made = recorded.transactional_producer("writer", ProducerOptions(max_block_ms=50))
        await made.init_transactions()
        await made.begin_transaction()
        await made.send("orders", b"first", partition=0)
        await made.commit()
        recorder.events.clear()
        yield made


def outcomes(events: list[Event]) -> list[Outcome]:
    return [event.what.outcome for event in events if isinstance(event.what, Returned)]


async def test_a_send_that_is_not_taken_never_takes_effect(
    producer: RecordedProducer, recorder: Recorder
) -> None:
    writer = producer.writer
    await producer.begin_transaction()
    with pytest.raises(UnknownTopicOrPartitionError):
        await producer.send("nowhere", b"second", partition=0)
    await producer.abort()
    assert outcomes(recorder.events) == [Outcome.FAILED]
    assert producer.writer == writer, "the next transaction has the same epoch"


async def test_an_abort_before_the_first_request_settles_the_accepted_records(
    producer: RecordedProducer, recorder: Recorder
) -> None:
    writer = producer.writer
    await producer.begin_transaction()
    await producer.send("orders", b"second", partition=0)
    await producer.abort()
    assert outcomes(recorder.events) == [Outcome.FAILED]
    assert producer.writer == writer, "the next transaction has the same epoch"

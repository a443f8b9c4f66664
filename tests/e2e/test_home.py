"""Clients in a process that was forked, and in a second event loop: a sentence, and no hang."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from aiosemel import (
    Consumer,
    IllegalStateError,
    JointTransaction,
    JointWriter,
    LogRange,
    LogRangeReader,
    Producer,
    SemelClient,
    Transaction,
    TransactionalProducer,
    TransactionPool,
)
from semel_local import LocalCluster

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

Call = Callable[["Made"], Awaitable[object]]


class Made:
    """One of everything that a client makes, in use."""

    client: SemelClient
    producer: Producer
    transactional: TransactionalProducer
    transaction: Transaction
    pool: TransactionPool
    consumer: Consumer
    reader: LogRangeReader
    joint: JointTransaction
    writer: JointWriter

    async def make(self, client: SemelClient, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.producer = client.producer()
        await self.producer.send_and_wait(topic, b"v", partition=0)
        self.transactional = client.transactional_producer(topic)
        await self.transactional.init_transactions()
        self.transaction = self.transactional.transaction()
        await self.transaction.__aenter__()
        await self.transaction.send_and_wait(topic, b"v", partition=0)
        self.pool = client.transactions(topic, size=2)
        await self.pool.open()
        self.consumer = client.consumer(topic)
        self.consumer.subscribe([topic])
        await self.consumer.poll(timeout_ms=0)
        topic_id = (await client.admin().describe_topic(topic)).topic_id
        self.reader = client.read_range(
            LogRange(topic=topic, topic_id=topic_id, partition=0, start_offset=0, end_offset=1)
        )
        self.joint = client.joint_transaction(f"joint-{topic}", 1, owner="o")
        self.writer = client.join(self.joint.handle)
        await self.writer.join()


async def polled(made: Made) -> None:
    await made.consumer.poll()


CALLS: dict[str, Call] = {
    "client.open": lambda it: it.client.open(),
    "client.close": lambda it: it.client.close(),
    "client.admin": lambda it: it.client.admin().list_topics(),
    "client.producer": lambda it: _sync(it.client.producer),
    "producer.send": lambda it: it.producer.send(it.topic, b"v", partition=0),
    "producer.flush": lambda it: it.producer.flush(),
    "producer.close": lambda it: it.producer.close(),
    "transactional.begin_transaction": lambda it: it.transactional.begin_transaction(),
    "transactional.abort": lambda it: it.transactional.abort(),
    "transactional.close": lambda it: it.transactional.close(),
    "transaction.send": lambda it: it.transaction.send(it.topic, b"v", partition=0),
    "transaction.__aexit__": lambda it: it.transaction.__aexit__(None, None, None),
    "pool.open": lambda it: it.pool.open(),
    "pool.transaction": lambda it: it.pool.transaction().__aenter__(),
    "pool.close": lambda it: it.pool.close(),
    "consumer.poll": polled,
    "consumer.seek": lambda it: _sync(lambda: it.consumer.seek((it.topic, 0), 0)),
    "consumer.position": lambda it: it.consumer.position((it.topic, 0)),
    "consumer.commit": lambda it: it.consumer.commit(),
    "consumer.unsubscribe": lambda it: it.consumer.unsubscribe(),
    "consumer.close": lambda it: it.consumer.close(),
    "reader.read": lambda it: it.reader.read(),
    "joint.commit": lambda it: it.joint.commit([]),
    "joint.abort": lambda it: it.joint.abort(),
    "joint.close": lambda it: it.joint.close(),
    "writer.send": lambda it: it.writer.send(it.topic, b"v", partition=0),
    "writer.finish": lambda it: it.writer.finish(),
    "writer.close": lambda it: it.writer.close(),
}


async def _sync(call: Callable[[], object]) -> None:
    call()


def refusals(made: Made) -> dict[str, str]:
    """Make every call in an event loop of its own; return the error of each."""
    said: dict[str, str] = {}
    for name, call in CALLS.items():
        try:
            asyncio.run(asyncio.wait_for(call(made), 5))
        except IllegalStateError as error:
            said[name] = error.message
    return said


def in_a_fork(run: Callable[[], str]) -> str:
    """Return the result of a function in a forked process; or the exit status of the process."""
    reading, writing = os.pipe()
    process_id = os.fork()
    if not process_id:
        os.close(reading)
        asyncio.events._set_running_loop(None)  # As in a new process, which runs none.
        try:
            os.write(writing, run().encode())
        except BaseException as error:  # noqa: BLE001 - the parent reads it
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    _, status = os.waitpid(process_id, 0)
    assert status == 0, f"the forked process ended with {status}: {text}"
    return text


async def test_everything_says_that_it_is_in_a_fork(
    cluster: LocalCluster, topic: str, client: SemelClient
) -> None:
    made = Made()
    await made.make(client, topic)

    def everything() -> str:
        said = refusals(made)
        belongs = f"belongs to process {os.getppid()}; process {os.getpid()} is a fork of it"
        return ", ".join(name for name in CALLS if belongs not in said.get(name, ""))

    def another_client() -> str:
        try:
            asyncio.run(SemelClient(cluster.bootstrap).open())
        except IllegalStateError as error:
            return error.message
        return "opened"

    assert in_a_fork(everything) == ""
    assert "gRPC does not survive a fork: start processes with" in in_a_fork(another_client)
    await made.transaction.__aexit__(None, None, None)


async def test_everything_says_that_it_is_in_another_event_loop(
    topic: str, client: SemelClient
) -> None:
    made = Made()
    await made.make(client, topic)
    said = await asyncio.to_thread(refusals, made)
    told = [name for name in CALLS if "opened in another event loop" in said.get(name, "")]
    assert told == list(CALLS)
    await made.transaction.__aexit__(None, None, None)

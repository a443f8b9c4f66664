"""Joint transactions from end to end: writers in processes of their own, one decision."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

import pytest
from committed_records import visible_records

from aiosemel import (
    ClientOptions,
    ConsumerOptions,
    IsolationLevel,
    JointHandle,
    JointOutcome,
    JointOwnerMismatchError,
    JointReceipt,
    JointWriter,
    OffsetReset,
    ProducerFencedError,
    SemelClient,
    TransactionAbortedError,
)
from aiosemel.errors import AbortableTransactionError
from semel_local import LocalCluster

pytestmark = pytest.mark.asyncio(loop_scope="session")

PARTITIONS = range(4)

WRITER = """
import asyncio, sys
from aiosemel import JointHandle, SemelClient

async def main(bootstrap, topic, handle, task, last_words):
    handle = JointHandle.from_json(handle)
    async with SemelClient(bootstrap) as client, client.join(handle) as writer:
        if not writer.already_committed:
            values = [f"{task}-{number}".encode() for number in range(100)]
            await writer.send_columns(topic, values, partition=int(task) % 4)
        if last_words == "flush":
            await writer.finish()
            print("written", flush=True)
            await asyncio.Event().wait()
        print((await writer.finish()).to_json(), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Tasks:
    """Runs writers in processes, as Spark runs the tasks of a batch."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic

    async def run(self, handle: JointHandle, tasks: Sequence[int]) -> list[JointReceipt]:
        """Run tasks to their ends; return their receipts."""
        processes = [await self.start(handle, task, "receipt") for task in tasks]
        outputs = await asyncio.gather(*(process.communicate() for process in processes))
        return [JointReceipt.from_json(out) for out, _ in outputs]

    async def lose(self, handle: JointHandle, task: int) -> None:
        """Run a task until everything is written, and kill it then."""
        process = await self.start(handle, task, "flush")
        assert process.stdout is not None
        assert await process.stdout.readline() == b"written\n"
        process.kill()
        await process.wait()

    async def start(
        self, handle: JointHandle, task: int, last_words: str
    ) -> asyncio.subprocess.Process:
        """Start a task."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", WRITER, self._bootstrap, self._topic, handle.to_json(), str(task), last_words),
            stdout=asyncio.subprocess.PIPE,
        )


@pytest.fixture
def tasks(cluster: LocalCluster, topic: str) -> Tasks:
    return Tasks(cluster.bootstrap, topic)


async def read(client: SemelClient, topic: str, count: int) -> list[str]:
    """Read that many committed records; then nothing else may be there."""
    options = ConsumerOptions(
        isolation_level=IsolationLevel.READ_COMMITTED,
        auto_offset_reset=OffsetReset.EARLIEST,
        fetch_max_wait_ms=50,
    )
    async with client.consumer(options=options) as consumer:
        consumer.assign((topic, partition) for partition in PARTITIONS)
        values: list[str] = []
        async with asyncio.timeout(20):
            while len(values) < count:
                polled = await consumer.poll(timeout_ms=1_000)
                values += [
                    (each.value or b"").decode() for some in polled.values() for each in some
                ]
        polled = await consumer.poll(timeout_ms=150)
        return values + [(each.value or b"").decode() for some in polled.values() for each in some]


async def visible(client: SemelClient, topic: str) -> list[str]:
    """Read the records that committed readers see by now, in order of values."""
    records = await visible_records(client, [(topic, partition) for partition in PARTITIONS])
    return sorted((record.value or b"").decode() for record in records)


async def open_version(client: SemelClient, name: str) -> int | None:
    described = await client.admin().describe_transactions(name)
    assert described.joint is not None
    return described.joint.open_version


def values_of(*tasks: int) -> list[str]:
    return sorted(f"{task}-{number}" for task in tasks for number in range(100))


async def test_many_processes_write_one_transaction(
    client: SemelClient, topic: str, name: str, tasks: Tasks
) -> None:
    """A replayed version is skipped by its writers, and committed once."""
    async with client.joint_transaction(name, 7, owner="query") as joint:
        receipts = await tasks.run(joint.handle, [0, 1, 2, 3])
        assert await joint.commit(receipts, wait_until_visible=True) is JointOutcome.COMMITTED
    assert sorted(await read(client, topic, 400)) == values_of(0, 1, 2, 3)
    again = client.joint_transaction(name, 7, owner="query", run="after a restart")
    receipts = await tasks.run(again.handle, [0, 1])
    assert all(receipt.already_committed for receipt in receipts)
    assert await again.commit(receipts) is JointOutcome.ALREADY_COMMITTED
    assert not again.repeated_in_run
    assert len(await read(client, topic, 400)) == 400


async def test_losing_attempts_and_dead_writers_are_left_out(
    client: SemelClient, topic: str, name: str, tasks: Tasks
) -> None:
    """Speculation writes a task twice; a writer is killed after it has written everything."""
    async with client.joint_transaction(name, 0, owner="query") as joint:
        await tasks.lose(joint.handle, 0)
        winner, loser = await tasks.run(joint.handle, [0, 0])
        assert loser.producer_id != winner.producer_id
        await joint.commit([winner], wait_until_visible=True)
        # The losers' markers have arrived too: nothing holds the partition back.
        assert await visible(client, topic) == values_of(0)
    async with client.joint_transaction(name, 1, owner="query") as joint:
        await joint.commit(await tasks.run(joint.handle, [4]), wait_until_visible=True)
        assert await visible(client, topic) == values_of(0, 4)


async def test_what_an_older_run_left_holds_no_reader_back(
    client: SemelClient, topic: str, name: str, tasks: Tasks
) -> None:
    """The newer run's writers get its producer ids, and write elsewhere with them."""
    older = client.joint_transaction(name, 5, owner="query", run="A")
    await tasks.lose(older.handle, 0)
    with suppress(ValueError):
        async with client.join(older.handle) as writer:
            await writer.send_and_wait(topic, b"never seen", partition=1)
            raise ValueError
    async with client.joint_transaction(name, 5, owner="query", run="B") as newer:
        receipts: list[JointReceipt] = []
        for task in (2, 3, 4, 1):  # One by one, so that the first two ids write to 2 and 3.
            receipts += await tasks.run(newer.handle, [task])
        await newer.commit(receipts, wait_until_visible=True)
        assert await visible(client, topic) == values_of(1, 2, 3, 4)


async def test_the_driver_ends_it_with_nothing_but_receipts(
    client: SemelClient, topic: str, name: str, tasks: Tasks
) -> None:
    """A Spark driver does not know the query's id in its commit: it is in the receipts."""
    handle = JointHandle(transactional_id=name, txn_version=0, owner="query", run="run")
    texts = [each.to_json() for each in await tasks.run(handle, [0, 1])]
    receipts = [JointReceipt.from_json(text) for text in texts]
    driver = client.joint_transaction_of(receipts[0].handle)
    assert await driver.commit(receipts) is JointOutcome.COMMITTED
    assert len(await read(client, topic, 200)) == 200


async def test_a_driver_that_wakes_up_too_late_changes_nothing(
    client: SemelClient, topic: str, name: str, tasks: Tasks
) -> None:
    """The zombie of the prototype: driver A stalls in its commit, B does it all again."""
    zombie = client.joint_transaction(name, 3, owner="query", run="A")
    of_zombie = await tasks.run(zombie.handle, [0, 1])
    successor = client.joint_transaction(name, 3, owner="query", run="B")
    of_successor = await tasks.run(successor.handle, [0, 1])
    with pytest.raises(TransactionAbortedError) as aborted:
        await zombie.commit(of_zombie)
    assert isinstance(aborted.value.__cause__, ProducerFencedError)
    outcome = await successor.commit(of_successor, wait_until_visible=True)
    assert outcome is JointOutcome.COMMITTED
    assert await zombie.commit(of_zombie) is JointOutcome.ALREADY_COMMITTED
    assert await visible(client, topic) == values_of(0, 1)
    with pytest.raises(ProducerFencedError):
        await client.join(
            JointHandle(transactional_id=name, txn_version=4, owner="query", run="A")
        ).join()


async def test_another_owner_needs_a_reset(client: SemelClient, name: str) -> None:
    await client.joint_transaction(name, 9, owner="one query").commit([])
    other = client.joint_transaction(name, 0, owner="another", run="its run")
    with pytest.raises(JointOwnerMismatchError):
        await client.join(other.handle).join()
    reset = client.joint_transaction(name, 0, owner="another", run="its run", reset=True)
    async with client.join(reset.handle) as writer:
        receipt = await writer.finish()
    assert await reset.commit([receipt]) is JointOutcome.COMMITTED


async def test_a_block_that_fails_aborts(client: SemelClient, topic: str, name: str) -> None:
    joint = client.joint_transaction(name, 0, owner="query")
    with suppress(ValueError):
        async with joint, client.join(joint.handle) as writer:
            await writer.send_and_wait(topic, b"never seen", partition=0)
            raise ValueError
    assert joint.outcome is JointOutcome.ABORTED
    await client.producer().send_and_wait(topic, b"seen", partition=0)
    # The next version waits for the markers of this one.
    await client.joint_transaction(name, 1, owner="query").commit([], wait_until_visible=True)
    assert await visible(client, topic) == ["seen"]


async def test_a_version_lives_as_long_as_its_writers_and_no_longer(
    client: SemelClient, topic: str, name: str
) -> None:
    joint = client.joint_transaction(name, 0, owner="query", transaction_timeout_ms=600)
    async with client.join(joint.handle) as writer:
        await asyncio.sleep(1.5)  # Real time, of a real coordinator: the test is that it passes.
        await writer.send_and_wait(topic, b"early", partition=0)
        receipt = await writer.finish()
    async with asyncio.timeout(20):
        while await open_version(client, name) is not None:
            pass
    with pytest.raises(TransactionAbortedError) as aborted:
        await joint.commit([receipt])
    assert aborted.value.details["reason"] == "TIMED_OUT"
    async with client.join(joint.handle) as writer:
        await writer.send(topic, b"again", partition=0)
        assert await joint.commit([await writer.finish()]) is JointOutcome.COMMITTED
    assert await read(client, topic, 1) == ["again"]


async def test_a_writer_hears_that_its_transaction_is_over(
    client: SemelClient, topic: str, name: str
) -> None:
    joint = client.joint_transaction(name, 0, owner="query", transaction_timeout_ms=300)
    async with client.join(joint.handle) as writer:
        await joint.abort()
        with pytest.raises(AbortableTransactionError):
            await _send_for_ever(writer, topic)


async def _send_for_ever(writer: JointWriter, topic: str) -> None:
    async with asyncio.timeout(20):
        while True:
            await writer.send_and_wait(topic, b"never seen", partition=0)


async def test_operators_see_writers(cluster: LocalCluster, topic: str, name: str) -> None:
    async with cluster.client(ClientOptions()) as client:
        joint = client.joint_transaction(name, 2, owner="query")
        async with client.join(joint.handle, name="task 5") as writer:
            await writer.send_and_wait(topic, b"x", partition=1)
            described = await client.admin().describe_transactions(name)
            assert described.joint is not None
            assert described.joint.open_version == 2
            assert described.joint.committed_version is None
            assert [each.writer.split("-")[0] for each in described.joint.writers] == ["task 5"]
            (listed,) = await client.admin().list_transactions(transactional_id_pattern=name)
            assert listed.joint_writers == 1
        await joint.abort()

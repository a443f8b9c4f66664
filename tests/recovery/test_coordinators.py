"""An older copy of a coordinator's volume, and an empty one: of coordinator 0, with metadata."""

import asyncio
from pathlib import Path

import pytest

from aiosemel import SemelError, TransactionalProducer
from recovery.stage import REFUSED, Stage, id_of, refused, stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TOPIC = "output"
OTHERS = ("coordinator-1", "broker-0", "broker-1", "group-coordinator-0")


async def work(on: Stage, coordinator: int) -> TransactionalProducer:
    """Write with an id from before the copy, and copy; then with it and a new one."""
    await on.client.admin().create_topic(TOPIC, partitions=1)
    known = await on.producer(id_of(coordinator))
    await on.write(known, TOPIC, "before")
    await on.copy(f"coordinator-{coordinator}")
    await on.write(known, TOPIC, "since")
    await on.write(known, TOPIC, "since then")
    await on.write(await on.producer(id_of(coordinator, 1)), TOPIC, "of a new id")
    return known


async def go_on(on: Stage, coordinator: int, known: TransactionalProducer) -> None:
    """Show that nothing is given twice, that nothing is undone, and that all goes on."""
    written = ["before", "since", "since then", "of a new id"]
    assert [value for _, value in await on.read(TOPIC)] == written
    with pytest.raises(SemelError):
        await on.write(known, TOPIC, "of a fenced producer")
    given = on.given[:-1]
    on.given.clear()
    for number in range(3):
        producer = await on.producer(id_of(coordinator, number))
        await on.write(producer, TOPIC, f"new {number}")
        await on.write(producer, TOPIC, f"newer {number}")
        written += [f"new {number}", f"newer {number}"]
    # The open transaction of the fenced producer ends when the broker has asked about it.
    async with asyncio.timeout(30):
        while len(read := await on.read(TOPIC)) < len(written):
            pass
    assert [value for _, value in read] == written
    assert len({*on.given}) == len(on.given)
    assert not {*given} & {*on.given}
    # Transactional ids that the copy does not know get new producer ids.
    new_ids = {producer_id for producer_id, _ in on.given[2:]}
    assert not new_ids & {producer_id for producer_id, _ in given}


@pytest.mark.parametrize("lost", [False, True], ids=["older", "lost"])
async def test_a_coordinator_gives_nothing_twice(tmp_path: Path, *, lost: bool) -> None:
    async with stage(tmp_path) as on:
        known = await work(on, 1)
        await (on.lose if lost else on.put_back)("coordinator-1")
        assert REFUSED in await refused(on, "coordinator-1")
        assert "journal was refused" in await refused(on, "coordinator-1")
        await on.recover("coordinator-1")
        await on.cluster.start("coordinator-1")
        await go_on(on, 1, known)


@pytest.mark.parametrize("lost", [False, True], ids=["older", "lost"])
async def test_the_controller_takes_over_the_newest_metadata(tmp_path: Path, *, lost: bool) -> None:
    async with stage(tmp_path) as on:
        known = await work(on, 0)
        await on.spread("since-the-copy")
        cluster_id = (await on.client.admin().describe_cluster()).cluster_id
        for name in OTHERS:
            await on.cluster.stop_service(name)
        await (on.lose if lost else on.put_back)("coordinator-0")

        options = ("--lost",) if lost else ()
        told = await on.recover("coordinator-0", *options, status=1)
        assert "--metadata-from" in told["sentence"]
        some = [f"--metadata-from={name}={on.data(name)}" for name in OTHERS]
        told = await on.recover("coordinator-0", *options, *some[:2], status=1)
        assert "broker 1, group coordinator 0" in told["sentence"]
        shown = await on.recover("coordinator-0", *options, *some)
        assert shown["metadata_taken_over"].startswith("version")
        for name in ("coordinator-0", *OTHERS):
            await on.cluster.start(name)

        described = await on.client.admin().describe_cluster()
        assert (described.cluster_id, described.topic_count) == (cluster_id, 2)
        await go_on(on, 0, known)


async def test_what_is_prepared_stays_so_and_can_be_completed(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.client.admin().create_topic(TOPIC, partitions=1)
        producer = await on.producer(id_of(1))
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, b"prepared", partition=0)
        prepared = await producer.prepare()
        await on.copy("coordinator-1")
        await on.write(producer, TOPIC, "since")
        await on.put_back("coordinator-1")
        await on.recover("coordinator-1")
        await on.cluster.start("coordinator-1")
        await on.client.admin().complete_prepared(prepared, commit=True, wait_until_visible=True)
        assert sorted(value for _, value in await on.read(TOPIC)) == ["prepared", "since"]

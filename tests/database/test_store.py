"""Topics into the application's own database: each record counts once, whatever fails."""

import asyncio
from typing import Any

import pytest

from aiosemel import (
    AfterRestore,
    Consumer,
    ConsumerOptions,
    ConsumerRecord,
    DatabaseAheadError,
    DatabaseBehindError,
    DatabaseSessionEndedError,
    DatabaseTablesError,
    OffsetReset,
    OffsetSpec,
    RequestTimedOutError,
    SemelClient,
    TopicPartition,
    TransactionAborted,
)
from aiosemel._database.group_offsets import GroupOffsets
from aiosemel.errors import OffsetOutOfRangeError
from database.layers import Layer
from database.ledger import Ledger, Records, store_of
from database.running import running, until

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def process(ledger: Ledger, *numbers: int, **more: Any) -> None:  # noqa: ANN401 - of the loop
    """Run until these payments are there."""
    async with running(store_of(ledger, **more)) as task:
        await until(lambda: ledger.has(*numbers), task)


@pytest.fixture
def ledger(layer: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    return Ledger(layer, client, topic, name)


@pytest.fixture
def on_sqlite(sqlite: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    return Ledger(sqlite, client, topic, name)


async def test_each_record_is_written_once_over_restarts(ledger: Ledger) -> None:
    await ledger.send(*range(20))
    await process(ledger, *range(20))
    await ledger.send(*range(20, 30))
    await process(ledger, *range(30))
    assert sorted(number for batch in ledger.batches for number in batch) == [*range(30)]
    assert all(len(batch) <= 4 for batch in ledger.batches)


async def test_a_handler_that_fails_leaves_nothing_and_is_called_again(ledger: Ledger) -> None:
    ledger.faults = [ValueError("not now")]
    await ledger.send(*range(8))
    await process(ledger, *range(8))
    assert any(isinstance(event, TransactionAborted) for event in ledger.events)


async def test_a_poison_record_is_given_up_and_the_others_stay(ledger: Ledger) -> None:
    given_up = []

    async def book(records: Records, session: object) -> None:
        for record in records:
            number = int(record.value or b"")
            await ledger.layer.pay(session, f"order-{number}", number)
            if number == 3:
                raise ValueError("three")

    async def give_up(record: ConsumerRecord, error: Exception, session: object) -> None:
        given_up.append((record.value, str(error)))
        await ledger.layer.pay(session, "poison", 1)

    await ledger.send(*range(8))
    handlers = {"handler": book, "on_poison": give_up}
    async with running(store_of(ledger, **handlers)) as task:
        expected = {f"order-{number}": number for number in range(8) if number != 3}

        async def is_done() -> bool:
            return await ledger.layer.payments() == expected | {"poison": 1}

        await until(is_done, task)
    assert given_up == [(b"3", "three")]


async def test_a_handler_that_commits_stops_the_loop(ledger: Ledger) -> None:
    async def book(_: Records, session: object) -> None:
        await ledger.layer.run_in(session, "COMMIT")

    await ledger.send(1)
    with pytest.raises(DatabaseSessionEndedError, match="must not commit"):
        await store_of(ledger, handler=book).run()


async def test_two_instances_write_each_record_once(ledger: Ledger) -> None:
    async with running(store_of(ledger)) as one, running(store_of(ledger)):
        for start in range(0, 60, 10):
            await ledger.send(*range(start, start + 10))
        await until(lambda: ledger.has(*range(60)), one)


async def test_a_position_that_another_instance_moved_rolls_the_handler_back(
    on_sqlite: Ledger,
) -> None:
    """A zombie: its group has given its partitions away while it was in the handler."""
    ledger = on_sqlite
    await ledger.send(*range(4))
    await process(ledger, *range(4))
    await ledger.layer.run("DELETE FROM payment WHERE order_id = 'order-4'")
    once = asyncio.Event()

    async def book(records: Records, session: object) -> None:
        if not once.is_set():
            once.set()  # As if another instance had processed these records at this moment.
            await ledger.layer.run_in(
                session, "UPDATE semel_position SET next_offset = next_offset + 1"
            )
        await ledger.book(records, session)

    await ledger.send(4)
    async with running(store_of(ledger, handler=book)) as task:
        await until(lambda: ledger.has(*range(5)), task)
    aborted = [event for event in ledger.events if isinstance(event, TransactionAborted)]
    assert "has moved the position" in str(aborted[0].error)


async def test_the_first_position_is_stored_before_the_first_read(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    await ledger.send(*range(6))

    async def fail(*_: object) -> None:
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        await store_of(ledger, handler=fail).run()
    rows = await ledger.layer.query("SELECT topic_partition, next_offset FROM semel_position")
    assert sorted(map(tuple, rows)) == [(0, 0), (1, 0)]


async def test_the_group_s_offsets_follow_for_lag(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    await ledger.send(*range(10))
    await process(ledger, *range(10))
    async with ledger.client.consumer(ledger.group) as consumer:
        committed = await consumer.committed([(ledger.topic, 0), (ledger.topic, 1)])
    assert sum(offset.offset for offset in committed.values() if offset is not None) == 10


async def committed(ledger: Ledger) -> int:
    """Return how many records the group's offsets say."""
    async with ledger.client.consumer(ledger.group) as consumer:
        offsets = await consumer.committed([(ledger.topic, 0), (ledger.topic, 1)])
    return sum(offset.offset for offset in offsets.values() if offset is not None)


async def test_an_offset_that_could_not_be_committed_follows_later(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They show that the database went back to a backup, so none may stay behind."""
    ledger = on_sqlite
    await ledger.send(*range(10))
    commit, failures = Consumer.commit, iter([True] * 3)

    async def fail_first(consumer: Consumer, *args: Any) -> None:  # noqa: ANN401 - of the consumer
        if next(failures, False):
            raise RequestTimedOutError("the group coordinator does not answer")
        await commit(consumer, *args)

    async def are_behind_nothing() -> bool:
        return await committed(ledger) == 10

    monkeypatch.setattr(Consumer, "commit", fail_first)
    async with running(store_of(ledger)) as task:
        await until(lambda: ledger.has(*range(10)), task)
        await until(are_behind_nothing, task)


async def test_the_next_owner_commits_what_a_killed_one_could_not(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = on_sqlite
    await ledger.send(*range(10))
    with monkeypatch.context() as patched:
        patched.setattr(GroupOffsets, "note", lambda *_: None)
        await process(ledger, *range(10))
    assert await committed(ledger) == 0

    async def are_behind_nothing() -> bool:
        return await committed(ledger) == 10

    async with running(store_of(ledger)) as task:
        await until(are_behind_nothing, task)


async def test_missing_tables_are_named_at_the_start(on_sqlite: Ledger) -> None:
    await on_sqlite.layer.run("DROP TABLE semel_position")
    with pytest.raises(DatabaseTablesError, match="Create the tables with"):
        await store_of(on_sqlite).run()


async def test_records_that_were_deleted_before_they_were_processed_stop_the_loop(
    on_sqlite: Ledger,
) -> None:
    ledger = on_sqlite
    for number in range(0, 60, 5):  # Of one key, so of one partition; each a batch.
        await ledger.send(number)
    entered, deleted = asyncio.Event(), asyncio.Event()

    async def book(records: Records, session: object) -> None:
        await ledger.book(records, session)
        entered.set()
        await deleted.wait()

    one_by_one = ConsumerOptions(
        auto_offset_reset=OffsetReset.EARLIEST, max_partition_fetch_bytes=1, prefetch_max_bytes=1
    )
    run = asyncio.create_task(store_of(ledger, handler=book, consumer_options=one_by_one).run())
    await entered.wait()
    places = [TopicPartition(ledger.topic, partition) for partition in range(2)]
    ends = await ledger.client.admin().list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    await ledger.client.admin().delete_records(
        {each: 10 for each, end in ends.items() if end is not None and end.offset}
    )
    deleted.set()
    with pytest.raises(OffsetOutOfRangeError):
        await asyncio.wait_for(run, 20)
    assert len(await ledger.layer.payments()) < 12


# -- restores ------------------------------------------------------------------------------------


async def test_a_database_of_an_older_backup_gets_the_records_again(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    await ledger.send(*range(10))
    await process(ledger, *range(10))
    await ledger.layer.run("DELETE FROM payment")  # As a backup from before the first record.
    await ledger.layer.run("UPDATE semel_position SET next_offset = 0, last_offset = NULL")
    await process(ledger, *range(10))


async def test_a_new_database_under_an_old_group_stops_the_loop(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    await ledger.send(*range(10))
    await process(ledger, *range(10))
    await ledger.layer.run("DELETE FROM payment")
    await ledger.layer.run("DELETE FROM semel_position")
    with pytest.raises(DatabaseBehindError, match=r"committed offset \d.*AfterRestore.REPROCESS"):
        await store_of(ledger).run()
    await ledger.send(10, 11, 12, 13)
    await process(ledger, 10, 11, 12, 13, after_restore=AfterRestore.SKIP)
    await ledger.layer.run("DELETE FROM payment")
    await ledger.layer.run("DELETE FROM semel_position")
    await process(ledger, *range(14), after_restore=AfterRestore.REPROCESS)


async def test_a_cluster_of_an_older_backup_stops_the_loop(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    await ledger.send(*range(10))
    await process(ledger, *range(10))
    await ledger.layer.run("UPDATE semel_position SET next_offset = next_offset + 100")
    with pytest.raises(DatabaseAheadError, match=r"up to offset 1\d\d, and the log ends at \d"):
        await store_of(ledger).run()

    async def is_skipped() -> bool:
        ((highest,),) = await ledger.layer.query("SELECT max(next_offset) FROM semel_position")
        return int(highest) < 100

    async with running(store_of(ledger, after_restore=AfterRestore.SKIP)) as task:
        await until(is_skipped, task)
    await ledger.send(10)
    await process(ledger, *range(11))


async def test_a_log_that_grew_past_the_position_again_is_noticed(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    await ledger.send(*range(10))
    await process(ledger, *range(10))
    await ledger.layer.run("UPDATE semel_position SET last_crc = last_crc + 1")
    with pytest.raises(DatabaseAheadError, match="the log has another record there"):
        await store_of(ledger).run()

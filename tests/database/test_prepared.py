"""Database and topics in one decision: the database's commit decides for both."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from opentelemetry.trace import SpanContext

from aiosemel import (
    DatabaseProducer,
    DatabaseSessionEndedError,
    Outputs,
    PreparedTransactionId,
    SemelClient,
    TransactionAborted,
    TransactionAbortedError,
    TransactionalProducer,
    TransactionState,
    Transform,
)
from aiosemel._database.decisions import Decisions
from aiosemel._database.joint_commit import JointCommit
from aiosemel._database.open_session import OpenSession
from aiosemel.errors import DatabaseUnavailableError
from database.layers import Layer
from database.ledger import OPTIONS, Ledger, Records, ledger_of
from database.running import running, until

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def ledger(layer: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    return await ledger_of(layer, client, topic, name)


@pytest_asyncio.fixture(loop_scope="session")
async def on_sqlite(sqlite: Layer, client: SemelClient, topic: str, name: str) -> Ledger:
    return await ledger_of(sqlite, client, topic, name)


def loop_of(ledger: Ledger, instance: int = 0, **more: Any) -> Transform:  # noqa: ANN401 - of the loop
    return ledger.database.transform(
        source=[ledger.topic],
        group=ledger.group,
        transactional_id=f"{ledger.group}-{instance}",
        handle_signals=False,
        on_event=ledger.note,
        **{"handler": ledger.pay, "options": OPTIONS, **more},
    )


async def nothing_is_prepared(ledger: Ledger) -> bool:
    """Whether the cluster waits for no decision of this application."""
    prepared = await ledger.client.admin().list_prepared_transactions(
        transactional_id_pattern=f"{ledger.group}.*"
    )
    return not prepared


# -- transform -----------------------------------------------------------------------------------


async def test_database_and_topic_have_the_same_records(ledger: Ledger) -> None:
    await ledger.send(*range(20))
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(20)), task)
    assert await nothing_is_prepared(ledger)
    assert await ledger.layer.query("SELECT name FROM semel_transaction") == []
    await ledger.send(*range(20, 30))
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(30)), task)
    assert sorted(number for batch in ledger.batches for number in batch) == [*range(30)]


async def test_a_handler_that_fails_leaves_nothing_in_both(ledger: Ledger) -> None:
    ledger.faults = [ValueError("not now")]
    await ledger.send(*range(8))
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(8)), task)
    assert any(isinstance(event, TransactionAborted) for event in ledger.events)


async def test_a_handler_that_commits_sends_nothing(ledger: Ledger) -> None:
    async def pay(records: Records, session: object, outputs: Outputs) -> None:
        await outputs.send(ledger.receipts, records[0].value)
        await ledger.layer.run_in(session, "COMMIT")

    await ledger.send(1)
    with pytest.raises(DatabaseSessionEndedError, match="must not commit"):
        await loop_of(ledger, handler=pay).run()
    assert await ledger.visible_receipts() == []


async def test_two_instances_share_the_work(ledger: Ledger) -> None:
    async with running(loop_of(ledger)) as one, running(loop_of(ledger, 1)):
        for start in range(0, 60, 10):
            await ledger.send(*range(start, start + 10))
        await until(lambda: ledger.has_both(*range(60)), one)


# -- what a process leaves -----------------------------------------------------------------------


class Died(BaseException):
    """The process has ended at this point."""


async def die_between_prepare_and_commit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    async def die(_: JointCommit, __: object, opened: OpenSession[object], *___: object) -> None:
        died = Died()
        await opened.roll_back(died)  # As the database does when the connection ends.
        raise died

    with monkeypatch.context() as patched:
        patched.setattr(JointCommit, "decide", die)
        patched.setattr(JointCommit, "close", lambda _: asyncio.sleep(0))
        with pytest.raises(Died):
            await loop_of(ledger).run()


async def test_a_successor_aborts_what_the_database_did_not_commit(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.send(*range(8))
    await die_between_prepare_and_commit(ledger, monkeypatch)
    assert not await nothing_is_prepared(ledger)
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(8)), task)
    assert await nothing_is_prepared(ledger)


async def test_a_successor_commits_what_the_database_committed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ledger.send(*range(3))

    async def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr("aiosemel._database.completions.Completions.add", die)
        patched.setattr(JointCommit, "close", lambda _: asyncio.sleep(0))
        with pytest.raises(Died):
            await loop_of(ledger, options=OPTIONS).run()
    assert await ledger.layer.payments()
    assert await ledger.visible_receipts() == []
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(3)), task)


async def test_decisions_of_a_future_that_the_cluster_has_lost_decide_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster went back to a backup, and gives epochs a second time."""
    await ledger.send(*range(4))
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(4)), task)
    transactional_id = f"{ledger.group}-0"
    known = await ledger.client.admin().describe_transactions(transactional_id)
    last = known.producer_epoch  # The next process gets the epoch behind it.
    names = {
        f"{known.producer_id}:{epoch}:{other}{transactional_id}"
        for epoch in range(last, last + 20)
        for other in ("", "other-")
    }
    for name in names:
        await ledger.layer.run(
            f"INSERT INTO semel_transaction VALUES ('{name}', 'committed', {2**60})"  # noqa: S608 - of this test
        )
    await ledger.send(*range(4, 12))
    await die_between_prepare_and_commit(ledger, monkeypatch)
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(12)), task)
    left = {each for each in names if "other-" in each or f":{last}:" in each}
    rows = await ledger.layer.query(
        f"SELECT name FROM semel_transaction WHERE decided_at_ms = {2**60}"  # noqa: S608 - of this test
    )
    assert {str(row[0]) for row in rows} == left


async def test_any_process_resolves_what_a_dead_one_left(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = on_sqlite
    await ledger.send(*range(4))
    await die_between_prepare_and_commit(ledger, monkeypatch)
    resolved = await ledger.database.resolve_prepared()
    assert [*resolved.values()] == [False]
    assert await nothing_is_prepared(ledger)
    rows = await ledger.layer.query("SELECT outcome FROM semel_transaction")
    assert [*map(tuple, rows)] == [("aborted",)]


async def test_a_slow_process_cannot_commit_what_another_one_resolved(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = on_sqlite
    await ledger.send(*range(4))
    decide = JointCommit.decide
    slow = asyncio.Event()

    async def resolved_first(
        joint: JointCommit, prepared: PreparedTransactionId, opened: OpenSession[object]
    ) -> None:
        if not slow.is_set():
            slow.set()
            await opened.statements.execute(  # As if another process had done it just before.
                "INSERT INTO semel_transaction VALUES (?, 'aborted', 0)", (str(prepared),)
            )
        await decide(joint, prepared, opened)

    monkeypatch.setattr(JointCommit, "decide", resolved_first)
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(*range(4)), task)
    aborted = [event for event in ledger.events if isinstance(event, TransactionAborted)]
    assert "another process has decided to abort" in str(aborted[0].error)


async def test_a_decision_of_another_process_is_kept_for_a_day(on_sqlite: Ledger) -> None:
    """The process of a commit may ask for it as long as it lives, also after a resolver."""
    ledger = on_sqlite
    now_ms = time.time_ns() // 1_000_000
    for name, outcome, age_ms in (
        ("1:1:old commit", "committed", 25 * 3_600_000),
        ("1:2:young commit", "committed", 70_000),
        ("1:3:old abort", "aborted", 25 * 3_600_000),
        ("1:4:young abort", "aborted", 70_000),
    ):
        await ledger.layer.run(
            f"INSERT INTO semel_transaction VALUES ('{name}', '{outcome}', {now_ms - age_ms})"  # noqa: S608 - of this test
        )
    await ledger.database.resolve_prepared()
    rows = await ledger.layer.query("SELECT name FROM semel_transaction ORDER BY name")
    assert [name for (name,) in rows] == ["1:2:young commit", "1:4:young abort"]


async def test_a_decision_of_a_fast_clock_is_kept_while_its_transaction_is_prepared(
    on_sqlite: Ledger,
) -> None:
    """A process whose clock is a minute behind has just committed, and its end is not known."""
    ledger = on_sqlite
    own = f"{ledger.group}-own"
    async with ledger.client.transactional_producer(own) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(ledger.receipts, b"1")
        prepared = await producer.prepare()
        await ledger.layer.run(f"INSERT INTO semel_producer VALUES ('{own}', 0)")  # noqa: S608 - of this test
        await ledger.layer.run(
            f"INSERT INTO semel_transaction VALUES ('{prepared}', 'committed', 1)"  # noqa: S608 - of this test
        )
        assert await ledger.database.resolve_prepared(older_than_ms=30_000) == {}
        assert await ledger.database.resolve_prepared() == {prepared: True}
    assert await ledger.visible_receipts() == [1]


async def test_a_new_producer_reads_no_record_again(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its consumer goes on where the database says: the group's offsets follow, or do not."""
    ledger = on_sqlite
    monkeypatch.setattr("aiosemel._database.group_offsets.GroupOffsets.note", lambda *_: None)
    seen: list[int] = []

    async def pay(records: Records, session: object, outputs: Outputs) -> None:
        seen.extend(int(record.value or b"") for record in records)
        await ledger.pay(records, session, outputs)

    options = replace(OPTIONS, take_over_when_fenced=True)
    await ledger.send(*range(10))
    loop = loop_of(ledger, handler=pay, options=options)
    async with running(loop) as task:
        await until(lambda: ledger.has_both(*range(10)), task)
        async with ledger.client.transactional_producer(f"{ledger.group}-0") as other:
            await other.init_transactions()
        await ledger.send(10)  # To one partition: nothing of the other one is at hand.
        await until(lambda: ledger.has_both(*range(11)), task)
        assert loop.stats.producers == 2
        await ledger.send(*range(11, 21))
        await until(lambda: ledger.has_both(*range(21)), task)
    assert sorted(number for number in seen if number != 10) == [*range(10), *range(11, 21)]


async def test_the_database_is_not_locked_while_the_cluster_does_not_begin(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = on_sqlite
    answers = asyncio.Event()
    asked = asyncio.Event()

    async def begin(producer: TransactionalProducer) -> None:
        asked.set()
        await answers.wait()
        await original(producer)

    original = TransactionalProducer.begin_transaction
    monkeypatch.setattr(TransactionalProducer, "begin_transaction", begin)
    await ledger.send(1)
    async with running(loop_of(ledger)) as task:
        await asked.wait()
        await ledger.layer.run("INSERT INTO semel_transaction VALUES ('of another', 'aborted', 1)")
        answers.set()
        await until(lambda: ledger.has_both(1), task)


async def test_an_error_does_not_end_the_resolver(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a right that is taken away for a while: readers would wait for dead processes."""
    calls = []

    async def fail_once(*_: object, **__: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise PermissionError("not for you")

    monkeypatch.setattr("aiosemel._database.resolver.INTERVAL_S", 0.01)
    monkeypatch.setattr("aiosemel._database.resolver.resolve", fail_once)

    async def was_called_again() -> bool:
        return len(calls) > 1

    async with on_sqlite.database.producer(on_sqlite.group):
        await until(was_called_again)


async def test_transactions_of_other_applications_are_left_alone(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    foreign = f"{ledger.group}-foreign"
    async with ledger.client.transactional_producer(foreign) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send(ledger.receipts, b"1")
        prepared = await producer.prepare()
        assert await ledger.database.resolve_prepared() == {}
        listed = await ledger.client.admin().list_transactions(states=[TransactionState.PREPARED])
        assert foreign in {entry.transactional_id for entry in listed}
        await producer.complete_prepared(prepared, commit=False)


# -- the producer --------------------------------------------------------------------------------


async def transact(
    ledger: Ledger,
    producer: DatabaseProducer[object],
    number: int,
    *,
    last: str = "",
    fails: bool = False,
) -> None:
    """Write a payment, and send its receipt."""
    async with producer.transaction() as (session, txn):
        await ledger.layer.pay(session, f"order-{number}", number)
        await txn.send(ledger.receipts, b"%d" % number)
        if last:
            await ledger.layer.run_in(session, last)
        if fails:
            raise ZeroDivisionError


async def test_a_block_commits_both(ledger: Ledger) -> None:
    async with ledger.database.producer(ledger.group) as producer:
        for number in range(3):
            await transact(ledger, producer, number)
    assert await ledger.has_both(0, 1, 2)


async def test_an_exception_in_a_block_rolls_both_back(ledger: Ledger) -> None:
    async with ledger.database.producer(ledger.group) as producer:
        with pytest.raises(ZeroDivisionError):
            await transact(ledger, producer, 0, fails=True)
        await transact(ledger, producer, 1)
    assert await ledger.has_both(1)


async def test_a_block_whose_database_refuses_sends_nothing(ledger: Ledger) -> None:
    async with ledger.database.producer(ledger.group) as producer:
        with pytest.raises(DatabaseSessionEndedError):
            await transact(ledger, producer, 0, last="ROLLBACK")
        await transact(ledger, producer, 1)
    assert await ledger.has_both(1)


async def test_a_block_that_was_resolved_by_another_process_aborts(on_sqlite: Ledger) -> None:
    ledger = on_sqlite
    async with ledger.database.producer(ledger.group) as producer:
        decide = JointCommit.decide

        async def resolved_first(
            joint: JointCommit,
            prepared: PreparedTransactionId,
            opened: OpenSession[object],
            parent: SpanContext | None,
        ) -> None:
            await opened.statements.execute(
                "INSERT INTO semel_transaction VALUES (?, 'aborted', 0)", (str(prepared),)
            )
            await decide(joint, prepared, opened, parent)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(JointCommit, "decide", resolved_first)
            with pytest.raises(TransactionAbortedError, match="another process has decided"):
                await transact(ledger, producer, 0)
    assert await ledger.has_both()
    assert await nothing_is_prepared(ledger)


async def test_a_loop_begins_when_its_database_answers_again(
    on_sqlite: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away at each step of the start: it was started again just then."""
    ledger = on_sqlite
    await ledger.send(1)
    register, answers = Decisions.register, iter([False, False, True])

    async def late(decisions: Decisions, transactional_id: str) -> None:
        if not next(answers):
            raise DatabaseUnavailableError("the connection is lost")
        await register(decisions, transactional_id)

    monkeypatch.setattr(Decisions, "register", late)
    async with running(loop_of(ledger)) as task:
        await until(lambda: ledger.has_both(1), task)

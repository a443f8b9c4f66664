"""The history of transactions in the admin client: put together from all coordinators."""

import pytest
from producer_harness import FakeCluster, open_client

from aiosemel import (
    AbortReason,
    AuditEntry,
    EndedParticipant,
    EndedTransaction,
    HistoryFilter,
    KnownOutcome,
    TopicPartition,
    TransactionClient,
    TransactionOperator,
)
from aiosemel.errors import IncompleteListError, InvalidRequestError
from semel.common.v1 import participants_pb2 as participants
from semel.coordinator.v1 import history_pb2 as wire
from semel.coordinator.v1 import outcomes_pb2 as outcomes

RPC = "ListTransactionHistory"


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(coordinators=2)


def entry(position: str, **fields: object) -> wire.EndedTransaction:
    given = {
        "transactional_id": "app",
        "producer_id": 1,
        "txn_version": -1,
        "outcome": outcomes.TRANSACTION_OUTCOME_COMMITTED,
    } | fields
    return wire.EndedTransaction(position=position, **given)  # type: ignore[arg-type]  # what a test gives


def answers(
    fake: FakeCluster, first: list[wire.EndedTransaction], second: list[wire.EndedTransaction]
) -> None:
    for host, entries in (("coordinator", first), ("coordinator1", second)):
        response = wire.ListTransactionHistoryResponse(transactions=entries)
        fake.canned[f"{host}:1", RPC] = response


async def test_an_entry_says_everything_with_the_names_of_topics(fake: FakeCluster) -> None:
    fake.create_topic("t")
    place = participants.TopicPartition(topic_id=fake.topics["t"], partition=1)
    full = entry(
        "9",
        producer_epoch=4,
        txn_version=7,
        outcome=outcomes.TRANSACTION_OUTCOME_ABORTED,
        abort_reason=outcomes.ABORT_REASON_OPERATOR,
        start_time_ms=1,
        prepared_time_ms=2,
        decided_time_ms=3,
        completed_time_ms=4,
        participants=[
            wire.EndedParticipant(
                participant=participants.Participant(topic_partition=place), marker_time_ms=4
            ),
            wire.EndedParticipant(participant=participants.Participant(group_id="g"), commits=True),
        ],
        participant_count=2,
        traceparent="00-x",
        client=wire.TransactionClient(name="n", address="a", principal="User:p"),
        operator=wire.TransactionOperator(name="ada", reason="r", principal="User:a", address="b"),
    )
    answers(fake, [full], [entry("8")])
    async with open_client(fake) as client:
        found = await client.admin().transaction_history()
    assert found.behind is None
    assert found.transactions[0] == EndedTransaction(
        transactional_id="app",
        producer_id=1,
        producer_epoch=4,
        txn_version=7,
        outcome=KnownOutcome.ABORTED,
        abort_reason=AbortReason.OPERATOR,
        start_time_ms=1,
        prepared_time_ms=2,
        decided_time_ms=3,
        completed_time_ms=4,
        participants=(
            EndedParticipant(
                partition=TopicPartition("t", 1), group_id=None, commits=False, marker_time_ms=4
            ),
            EndedParticipant(partition=None, group_id="g", commits=True, marker_time_ms=None),
        ),
        participant_count=2,
        traceparent="00-x",
        client=TransactionClient(name="n", address="a", principal="User:p"),
        operator=TransactionOperator(name="ada", reason="r", principal="User:a", address="b"),
        position="9",
    )
    bare = found.transactions[1]
    assert (bare.txn_version, bare.abort_reason, bare.start_time_ms) == (None, None, None)
    assert (bare.client, bare.operator, bare.completed_time_ms) == (None, None, None)


async def test_lists_of_all_coordinators_are_one_list_the_last_one_first(fake: FakeCluster) -> None:
    answers(fake, [entry("5"), entry("2")], [entry("4"), entry("3")])
    async with open_client(fake) as client:
        whole = await client.admin().transaction_history()
        part = await client.admin().transaction_history(limit=3, behind="6")
    assert [each.position for each in whole.transactions] == ["5", "4", "3", "2"]
    assert whole.behind is None
    assert [each.position for each in part.transactions] == ["5", "4", "3"]
    assert part.behind == "3"
    asked = fake.asked(wire.ListTransactionHistoryRequest)
    assert {(each.behind, each.limit) for each in asked} == {("", 1_000), ("6", 3)}


async def test_a_part_of_the_history_has_the_names_of_topics(fake: FakeCluster) -> None:
    """They are asked for before the other coordinator has used up the time of the call."""
    fake.create_topic("t")
    place = participants.TopicPartition(topic_id=fake.topics["t"], partition=1)
    participant = participants.Participant(topic_partition=place)
    ended = wire.EndedParticipant(participant=participant)
    here = entry("9", participants=[ended], participant_count=1)
    answers(fake, [here], [])
    async with open_client(fake) as client:
        await client.admin().transaction_history()
        fake.away.add("coordinator1:1")
        for _ in range(4):  # Any coordinator may be asked for the names.
            with pytest.raises(IncompleteListError) as raised:
                await client.admin().transaction_history()
            (known,) = raised.value.partial.transactions
            assert known.participants[0].partition == TopicPartition("t", 1)
            assert {*raised.value.errors} == {"coordinator-1"}


async def test_every_filter_is_asked_for(fake: FakeCluster) -> None:
    fake.create_topic("t")
    answers(fake, [], [])
    wanted = HistoryFilter(
        outcome=KnownOutcome.ABORTED,
        abort_reasons=(AbortReason.FENCED,),
        transactional_id_prefix="a",
        producer_id=3,
        producer_epoch=0,
        from_time_ms=4,
        before_time_ms=5,
        topic="t",
        partition=0,
        group_id="g",
    )
    async with open_client(fake) as client:
        assert (await client.admin().transaction_history(wanted)).transactions == ()
    assert fake.asked(wire.ListTransactionHistoryRequest)[0] == wire.ListTransactionHistoryRequest(
        outcome=outcomes.TRANSACTION_OUTCOME_ABORTED,
        abort_reasons=[outcomes.ABORT_REASON_FENCED],
        transactional_id_prefix="a",
        producer_id=3,
        producer_epoch=0,
        from_time_ms=4,
        before_time_ms=5,
        topic_id=fake.topics["t"],
        partition=0,
        group_id="g",
        limit=1_000,
    )


async def test_one_id_is_asked_for_at_its_coordinator_only(fake: FakeCluster) -> None:
    answers(fake, [entry("1")], [entry("1")])
    async with open_client(fake) as client:
        found = await client.admin().transaction_history(HistoryFilter(transactional_id="app"))
    assert len(found.transactions) == 1
    assert len(fake.asked(wire.ListTransactionHistoryRequest)) == 1


async def test_a_topic_that_is_gone_is_asked_for_by_its_id(fake: FakeCluster) -> None:
    answers(fake, [], [])
    async with open_client(fake) as client:
        await client.admin().transaction_history(HistoryFilter(topic="gone"))
    assert fake.asked(wire.ListTransactionHistoryRequest)[0].topic_id == "gone"


@pytest.mark.parametrize(
    ("wanted", "limit", "text"),
    [
        (HistoryFilter(), 0, "limit is 0"),
        (HistoryFilter(partition=1), 1, "without its topic"),
        (HistoryFilter(outcome=KnownOutcome.ONGOING), 1, "outcome is ONGOING"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(
    fake: FakeCluster, wanted: HistoryFilter, limit: int, text: str
) -> None:
    async with open_client(fake) as client:
        with pytest.raises(InvalidRequestError, match=text):
            await client.admin().transaction_history(wanted, limit=limit)


# -- the audit -----------------------------------------------------------------------------------


async def test_the_audit_of_all_coordinators_is_one_list_the_last_one_first(
    fake: FakeCluster,
) -> None:
    for host, positions in (("coordinator", "51"), ("coordinator1", "42")):
        entries = [
            wire.AuditEntry(
                position=position,
                time_ms=int(position),
                action="FenceProducer",
                what="w",
                principal="User:ada",
                address="10.0.0.1",
                operator="ada",
                reason="r",
                end="DONE",
            )
            for position in positions
        ]
        fake.canned[f"{host}:1", "ListAudit"] = wire.ListAuditResponse(entries=entries)
    async with open_client(fake) as client:
        whole = await client.admin().operators.list_audit()
        part = await client.admin().operators.list_audit(
            actions=["FenceProducer"],
            principal="User:ada",
            address="10.0.0.1",
            from_time_ms=1,
            before_time_ms=2,
            behind="6",
            limit=2,
        )
        with pytest.raises(InvalidRequestError, match="limit is 0"):
            await client.admin().operators.list_audit(limit=0)
    assert [each.time_ms for each in whole.entries] == [5, 4, 2, 1]
    assert whole.behind is None
    assert ([each.position for each in part.entries], part.behind) == (["5", "4"], "4")
    assert part.entries[0] == AuditEntry(
        time_ms=5,
        action="FenceProducer",
        what="w",
        principal="User:ada",
        address="10.0.0.1",
        operator="ada",
        reason="r",
        end="DONE",
        position="5",
    )
    assert fake.asked(wire.ListAuditRequest)[-1] == wire.ListAuditRequest(
        actions=["FenceProducer"],
        principal="User:ada",
        address="10.0.0.1",
        from_time_ms=1,
        before_time_ms=2,
        behind="6",
        limit=2,
    )

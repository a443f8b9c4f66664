"""The audit: requests that change something by hand are noted before they are carried out."""

import pytest
from google.protobuf.message import Message
from transactions_harness import TransactionsSerde
from transactions_requests import COMMIT, ask
from transactions_service_harness import CALL, Cluster, Coordinator, until

from semel.coordinator.journal.v1 import transactions_pb2 as journal
from semel.coordinator.v1 import history_pb2 as wire
from semel.coordinator.v1 import outcomes_pb2 as outcomes
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.errors import InvalidRequestError, TransactionalIdNotFoundError
from semel_coordinator.transactions.machine import CoordinatorEpoch, TransactionLimits
from semel_coordinator.transactions.machine.history.audit_trail import (
    AuditEntry,
    AuditNoted,
    AuditTrail,
)
from semel_coordinator.transactions.rpc.operators.auditor import Auditor
from semel_runtime.authentication.principal import Origin, Principal
from semel_runtime.server.calls import Call


def call_of(name: str, *, is_cluster: bool = False, address: str = "10.0.0.7") -> Call:
    principal = Principal(name=name, is_cluster=is_cluster)
    return Call(origin=Origin(listener="l", principal=principal, address=address))


async def audited(coordinator: Coordinator, request: Message, call: Call = CALL) -> Message:
    """Give a request to its handler, with the audit in front of it."""
    handlers = coordinator.handlers()
    auditor = Auditor(coordinator.runner, coordinator.machine, coordinator.parts.clock)
    handlers.wrap(auditor.audited)
    name = type(request).__name__.removesuffix("Request")
    (endpoint,) = (each for each in handlers if each.method.name == name)
    return await endpoint.handler(request, call)


async def listed(coordinator: Coordinator, **fields: object) -> wire.ListAuditResponse:
    request = wire.ListAuditRequest(**fields)  # type: ignore[arg-type]  # what a test gives
    response = await ask(coordinator, request)
    assert isinstance(response, wire.ListAuditResponse)
    return response


def fence(name: str = "app", *, dry_run: bool = False) -> outcomes.FenceProducerRequest:
    return outcomes.FenceProducerRequest(
        transactional_id=name,
        instance_id="fence",
        operator=outcomes.Operator(name="ada", reason="runs twice"),
        dry_run=dry_run,
    )


async def test_an_entry_says_who_asked_for_what_from_where_and_why(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await coordinator.init()
        await audited(coordinator, fence(), call_of("root"))
        (entry,) = (await listed(coordinator)).entries
    assert (entry.action, entry.end) == ("FenceProducer", "DONE")
    assert entry.what == 'transactional_id: "app" instance_id: "fence"'
    assert (entry.principal, entry.address) == ("User:root", "10.0.0.7")
    assert (entry.operator, entry.reason) == ("ada", "runs twice")
    assert entry.time_ms == cluster.clock.now_ms()


async def test_an_entry_of_another_service_is_durable_and_gets_its_end(cluster: Cluster) -> None:
    note = wire.NoteAuditRequest(
        action="DeleteRecords",
        what="partitions {}",
        principal="User:root",
        address="10.0.0.7",
        operator="ada",
        reason="space",
    )
    async with cluster.coordinator() as coordinator:
        auditor = Auditor(coordinator.runner, coordinator.machine, coordinator.parts.clock)
        number = (await auditor.note_audit(note, CALL)).number
    async with cluster.coordinator() as coordinator:
        (entry,) = (await listed(coordinator)).entries
        assert (entry.action, entry.what, entry.end) == ("DeleteRecords", "partitions {}", "")
        assert (entry.principal, entry.address) == ("User:root", "10.0.0.7")
        assert (entry.operator, entry.reason) == ("ada", "space")
        auditor = Auditor(coordinator.runner, coordinator.machine, coordinator.parts.clock)
        for known in (number, 99):
            await auditor.note_audit(wire.NoteAuditRequest(number=known, end="DONE"), CALL)
        (entry,) = (await listed(coordinator)).entries
        assert entry.end == "DONE"


@pytest.mark.parametrize(
    "bad",
    [
        wire.NoteAuditRequest(principal="User:a"),
        wire.NoteAuditRequest(action="a"),
        wire.NoteAuditRequest(action="a", principal="User:a", what="x" * 1_002),
        wire.NoteAuditRequest(action="a", principal="User:a", address="x" * 256),
        wire.NoteAuditRequest(number=-1, end="DONE"),
        wire.NoteAuditRequest(number=1),
    ],
    ids=str,
)
async def test_a_malformed_entry_of_another_service_is_refused(
    cluster: Cluster, bad: wire.NoteAuditRequest
) -> None:
    async with cluster.coordinator() as coordinator:
        auditor = Auditor(coordinator.runner, coordinator.machine, coordinator.parts.clock)
        with pytest.raises(InvalidRequestError):
            await auditor.note_audit(bad, CALL)
        assert not (await listed(coordinator)).entries


async def test_entries_survive_a_restart_also_without_their_end(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await coordinator.init()
        await audited(coordinator, fence())
        await coordinator.runner.run(coordinator.machine.give_producer_id)
    async with cluster.coordinator() as coordinator:
        (entry,) = (await listed(coordinator)).entries
        assert entry.end == "DONE"


async def test_a_refused_request_stands_in_the_list_with_its_error(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(TransactionalIdNotFoundError):
            await audited(coordinator, fence("nobody"))
        (entry,) = (await listed(coordinator)).entries
        assert entry.end == "TRANSACTIONAL_ID_NOT_FOUND"


async def test_an_entry_is_durable_before_its_request_is_carried_out(cluster: Cluster) -> None:
    seen: list[int] = []
    async with cluster.coordinator() as coordinator:
        coordinator.runner.on_durable(
            lambda records: seen.extend(isinstance(each, AuditNoted) for each in records)
        )
        await coordinator.init()
        seen.clear()
        await audited(coordinator, fence())
        await until(lambda: len(seen) > 2)
    assert seen[0]
    assert not seen[1]


async def test_rehearsals_and_producers_and_services_leave_no_entry(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        key = await coordinator.init()
        await audited(coordinator, fence(dry_run=True))
        await audited(coordinator, fence(), call_of("coordinator-1", is_cluster=True))
        prepared = await audited(
            coordinator,
            transactions.PrepareTxnRequest(
                transactional_id="app", producer_id=key.producer_id, producer_epoch=1
            ),
        )
        assert isinstance(prepared, transactions.PrepareTxnResponse)
        complete = transactions.CompletePreparedTxnRequest(
            transactional_id="app", producer_id=key.producer_id, prepared_epoch=1, result=COMMIT
        )
        complete.producer_epoch = 2
        await audited(coordinator, complete)
        assert not (await listed(coordinator)).entries
        complete.ClearField("producer_epoch")
        await audited(coordinator, complete)
        (entry,) = (await listed(coordinator)).entries
        assert entry.action == "CompletePreparedTxn"


async def test_filters_and_pages(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        await coordinator.init()
        for name, address in (("a", "10.0.0.7"), ("b", "10.0.0.7"), ("b", "10.0.0.8")):
            cluster.clock.advance(10)
            with pytest.raises(TransactionalIdNotFoundError):
                await audited(coordinator, fence("nobody"), call_of(name, address=address))
        begun = cluster.clock.now_ms() - 20

        async def who(**fields: object) -> list[str]:
            return [each.principal for each in (await listed(coordinator, **fields)).entries]

        assert await who() == ["User:b", "User:b", "User:a"]
        assert await who(principal="User:a") == ["User:a"]
        assert await who(address="10.0.0.7") == ["User:b", "User:a"]
        assert await who(address="10.0.0") == []
        assert await who(actions=["FenceProducer"]) == ["User:b", "User:b", "User:a"]
        assert await who(actions=["DeleteTopics"]) == []
        assert await who(before_time_ms=begun + 1) == ["User:a"]
        assert await who(from_time_ms=begun + 1) == ["User:b", "User:b"]
        first = await listed(coordinator, limit=2)
        assert [each.principal for each in first.entries] == ["User:b", "User:b"]
        assert await who(page_token=first.next_page_token) == ["User:a"]
        assert await who(behind=first.entries[1].position) == ["User:a"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"behind": "1"}, "behind is '1'"),
        ({"behind": "a-b-c"}, "behind is 'a-b-c'"),
        ({"page_token": "x"}, "page_token is 'x'"),
        ({"limit": -1}, "limit is -1"),
        ({"actions": [""]}, r"actions\[0\]"),
        ({"actions": ["x"] * 101}, "actions"),
        ({"principal": "x" * 256}, "principal"),
        ({"address": "x" * 256}, "address"),
        ({"from_time_ms": -1}, "from_time_ms is -1"),
        ({"before_time_ms": -1}, "before_time_ms is -1"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    cluster: Cluster, fields: dict[str, object], text: str
) -> None:
    async with cluster.coordinator() as coordinator:
        with pytest.raises(InvalidRequestError, match=text):
            await listed(coordinator, **fields)


async def test_a_long_request_is_cut(cluster: Cluster) -> None:
    async with cluster.coordinator() as coordinator:
        request = fence()
        request.instance_id = "x" * 5_000
        with pytest.raises(InvalidRequestError):
            await audited(coordinator, request)
        (entry,) = (await listed(coordinator)).entries
        assert len(entry.what) == 1_001
        assert entry.end == "INVALID_REQUEST"


async def test_the_oldest_entries_go(cluster: Cluster) -> None:
    async with cluster.coordinator(limits=TransactionLimits(audit_entries_max=2)) as coordinator:
        for name in ("a", "b", "c"):
            with pytest.raises(TransactionalIdNotFoundError):
                await audited(coordinator, fence(name))
        found = [each.what for each in (await listed(coordinator)).entries]
    assert [text.split('"')[1] for text in found] == ["c", "b"]


def entry(number: int, **fields: object) -> AuditEntry:
    given = {"time_ms": 5, "action": "a", "what": "w", "principal": "p", "address": ""} | fields
    return AuditEntry(number=number, **given)  # type: ignore[arg-type]  # what a test gives


def test_a_snapshot_makes_the_same_list_and_goes_on_with_its_numbers() -> None:
    trail, restored = AuditTrail(300), AuditTrail(300)
    for number in range(350):
        trail.replay(AuditNoted(entries=(entry(number),)))
    for record in trail.snapshot():
        restored.replay(record)
    assert restored.newest_first() == trail.newest_first()
    assert len(restored) == 300
    asked = {
        "action": "a",
        "what": "",
        "principal": "p",
        "address": "",
        "operator": "",
        "reason": "",
    }
    noted = restored.note(**asked, now_ms=1)
    assert (noted.entries[0].number, noted.entries[0].time_ms) == (350, 5)
    assert restored.ended(0, "DONE") is None


def test_an_older_release_reads_a_coordinator_epoch_of_no_partition() -> None:
    serde = TransactionsSerde()
    record = AuditNoted(entries=(entry(1, end="DONE", operator="ada"),))
    assert serde.decode(serde.encode(record)) == record
    message = journal.TransactionsRecord.FromString(serde.encode(record))
    message.ClearField("audit")
    read = serde.decode(message.SerializeToString())
    assert read == CoordinatorEpoch(partition=-1, coordinator_epoch=0)

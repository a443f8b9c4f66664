"""The types of a value's fields say how its message is written and read."""

from enum import StrEnum
from typing import NamedTuple

import pytest
from msgspec import Struct

from semel.broker.journal.v1 import log_pb2 as broker
from semel.common.journal.v1 import cluster_pb2 as cluster
from semel.coordinator.journal.v1 import transactions_pb2 as transactions
from semel_runtime.access.acls import Acl, Operation, PatternType, Permission, ResourceType
from semel_runtime.access.client_quotas import ClientQuota
from semel_runtime.journal.plain_messages import PlainMessage


class Outcome(StrEnum):
    """Its numbers are those of the message, by name."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"


class End(Struct, frozen=True, kw_only=True):
    """A value within another one."""

    end_id: str = ""
    owner: str = ""
    run: str = ""
    txn_version: int = 0
    outcome: Outcome = Outcome.COMMITTED
    already_committed: bool = False


class Id(Struct, frozen=True, kw_only=True):
    """A value within it may be absent."""

    transactional_id: str = "t"
    owner: str = "o"
    run: str = ""
    superseded: tuple[str, ...] = ()
    timeout_ms: int = 0
    committed_version: int = 0
    open_version: int = 0
    start_ms: int = 0
    last_end: End | None = None
    last_update_ms: int = 0
    one_shot: bool = False
    principal: str = ""


class Range(NamedTuple):
    """A named tuple is a value, too."""

    start_offset: int
    end_offset: int


class TakenOver(Struct, frozen=True, kw_only=True):
    """It has several values."""

    log_id: int
    log_start_offset: int
    log_end_offset: int
    gaps: tuple[Range, ...] = ()


ACL = Acl(
    resource_type=ResourceType.GROUP,
    resource_name="g",
    pattern_type=PatternType.PREFIXED,
    principal="User:ada",
    operation=Operation.READ,
    permission=Permission.DENY,
)


@pytest.mark.parametrize("last_end", [None, End(), End(end_id="e", outcome=Outcome.ABORTED)])
def test_a_value_within_another_comes_back_or_is_absent(last_end: End | None) -> None:
    mapping = PlainMessage(Id, transactions.JointIdRecord)
    message = mapping.message(Id(last_end=last_end, superseded=("a", "b")))
    assert message.HasField("last_end") == (last_end is not None)
    assert mapping.read(message) == Id(last_end=last_end, superseded=("a", "b"))


def test_an_enum_of_texts_is_written_by_the_names_of_its_members() -> None:
    message = PlainMessage(End, transactions.JointEndRecord).message(End(outcome=Outcome.ABORTED))
    assert message == transactions.JointEndRecord(outcome=transactions.OUTCOME_ABORTED)


def test_an_outcome_without_a_member_is_not_read() -> None:
    with pytest.raises(KeyError):
        PlainMessage(End, transactions.JointEndRecord).read(transactions.JointEndRecord())


def test_an_enum_of_numbers_comes_back_as_its_members() -> None:
    mapping = PlainMessage(Acl, cluster.AclImage)
    read = mapping.read(mapping.message(ACL))
    assert read == ACL
    assert isinstance(read.permission, Permission)


def test_named_tuples_come_back_in_their_order() -> None:
    mapping = PlainMessage(TakenOver, broker.LogTakenOver)
    value = TakenOver(
        log_id=1, log_start_offset=2, log_end_offset=9, gaps=(Range(3, 4), Range(2, 3))
    )
    message = mapping.message(value)
    assert message.gaps == [
        broker.OffsetRange(start_offset=3, end_offset=4),
        broker.OffsetRange(start_offset=2, end_offset=3),
    ]
    assert mapping.read(message) == value


def test_a_map_comes_back_as_pairs_by_name() -> None:
    mapping = PlainMessage(ClientQuota, cluster.ClientQuotaImage)
    written = cluster.ClientQuotaImage(user="ada", limits={"b": 2.0, "a": 1.0})
    read = mapping.read(written)
    assert read == ClientQuota(user="ada", limits=(("a", 1.0), ("b", 2.0)))
    assert mapping.message(read) == written


def test_a_field_that_is_always_there_has_a_value() -> None:
    class MayBeAbsent(Struct, frozen=True):
        start_offset: int
        end_offset: int | None

    with pytest.raises(AssertionError, match=r"OffsetRange\.end_offset is never absent"):
        PlainMessage(MayBeAbsent, broker.OffsetRange)

"""The types of a value's fields say how its message is written and read."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

import pytest
from msgspec import Struct

from semel.broker.journal.v1 import log_pb2 as broker
from semel.common.journal.v1 import cluster_pb2 as cluster
from semel.coordinator.journal.v1 import transactions_pb2 as transactions
from semel_common.wire.messages.plain_messages import PlainMessage


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


class Permission(IntEnum):
    """Its numbers are those of the message."""

    DENY = 2
    ALLOW = 3


class Rule(Struct, frozen=True, kw_only=True):
    """A number of it has a name."""

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 0
    principal: str = ""
    operation: int = 0
    permission: Permission = Permission.DENY


class Quota(Struct, frozen=True):
    """It has a map."""

    user: str
    limits: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Address:
    """Fields of it may be empty, but not absent."""

    name: str
    host: str | None
    port: int | None


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
    mapping = PlainMessage(Rule, cluster.AclImage)
    read = mapping.read(mapping.message(Rule(permission=Permission.ALLOW)))
    assert read == Rule(permission=Permission.ALLOW)
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
    mapping = PlainMessage(Quota, cluster.ClientQuotaImage)
    written = cluster.ClientQuotaImage(user="ada", limits={"b": 2.0, "a": 1.0})
    read = mapping.read(written)
    assert read == Quota("ada", (("a", 1.0), ("b", 2.0)))
    assert mapping.message(read) == written


@pytest.mark.parametrize(
    "address", [Address(name="", host=None, port=None), Address(name="a", host="b", port=1)]
)
def test_none_is_an_empty_field_where_none_can_be_absent(address: Address) -> None:
    mapping = PlainMessage(Address, cluster.ListenerImage)
    assert mapping.read(mapping.message(address)) == address

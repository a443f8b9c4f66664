"""What a group of many partitions costs grows as they do, and no faster: others wait meanwhile."""

from collections.abc import Iterator
from typing import ClassVar

import pytest
from group_harness import GROUP, PRODUCER_ID, START_MS, GroupHarness

from semel_common.errors import InvalidRequestError
from semel_common.ids import TopicPartition
from semel_group.machine.offset_commits import distinct
from semel_group.machine.records import OffsetCommitted, TxnOffsetsCommitted
from semel_group.machine.values import Committer, NamedPartition, TopicName

MANY = 1_000
EACH = 20
"""How often a partition may be looked at."""


class Counted(TopicPartition):
    """Counts how often any of them is looked up in a set, or compared."""

    looks: ClassVar[int] = 0

    def __hash__(self) -> int:
        Counted.looks += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return super().__eq__(other)


def offsets() -> tuple[OffsetCommitted, ...]:
    return tuple(
        OffsetCommitted(
            group_id=GROUP,
            partition=Counted("gone-id", number),
            committed_offset=number,
            metadata="",
            commit_time_ms=START_MS,
        )
        for number in range(MANY)
    )


@pytest.fixture
def group() -> Iterator[GroupHarness]:
    """A group with a position in each partition, which an open transaction moves."""
    harness = GroupHarness()
    for position, each in enumerate(offsets(), start=10):
        harness.machine.replay(position, each)
    transaction = TxnOffsetsCommitted(
        group_id=GROUP,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        start_time_ms=START_MS,
        offsets=offsets(),
    )
    harness.machine.replay(10 * MANY, transaction)
    Counted.looks = 0
    yield harness
    assert Counted.looks < EACH * MANY


def test_what_a_transaction_holds_is_found_out_once_for_all_that_may_expire(
    group: GroupHarness,
) -> None:
    group.now_ms += 10**12
    assert group.expire_offsets() == 0


def test_a_deleted_group_is_taken_out_of_a_transaction_at_once(group: GroupHarness) -> None:
    assert group.delete() == [""]
    assert group.machine.offsets.group(GROUP).is_empty


def test_offsets_to_be_deleted_are_looked_for_once(group: GroupHarness) -> None:
    asked = [NamedPartition(TopicName("orders", ""), number % 4) for number in range(MANY)]
    assert group.run(group.machine.deletion.delete_offsets(GROUP, asked)) == ()


def test_a_partition_that_is_named_twice_is_found_among_many() -> None:
    named = [*offsets()]
    Counted.looks = 0
    with pytest.raises(InvalidRequestError, match=f"partition {MANY - 1} of topic id gone-id"):
        distinct([*named, named[-1]])
    assert Counted.looks < EACH * MANY


def test_what_is_refused_holds_on_to_nothing_that_it_was_decided_with() -> None:
    """Frames of many errors are so much garbage that to collect it takes longer than all else."""
    harness = GroupHarness()
    harness.join("a")
    harness.commit({0: 1}, Committer(group_id="other"))
    unknown = [NamedPartition(TopicName("gone", ""), 0)]
    machine = harness.machine
    fetched = harness.run(
        machine.committed_offsets.fetch_offsets(
            Committer(group_id=GROUP), unknown, require_stable=False
        )
    )
    refused = [
        *(each.error for each in harness.commit({99: 1}, Committer(group_id="other"))),
        *(offset.error for offset in fetched.offsets),
        *(each.error for each in harness.run(machine.deletion.delete_offsets(GROUP, unknown))),
        *harness.run(machine.deletion.delete_groups([GROUP])),
    ]
    assert len(refused) == 4
    for error in refused:
        assert error is not None
        assert error.__traceback__ is None

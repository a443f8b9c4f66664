"""What operators ask a group coordinator's machine: which transactions are open."""

from group_harness import COMMIT, GROUP, PRODUCER_ID, GroupHarness

from semel_common.ids import GroupId
from semel_runtime.participant.inquiry import OpenSince, OpenTransactionAt


def test_open_transactions_are_listed_the_oldest_first() -> None:
    group = GroupHarness()
    group.txn_commit({0: 8}, epoch=1)
    start_ms = group.now_ms
    group.now_ms += 10
    group.txn_commit({0: 9}, epoch=2)

    def found(age_ms: int = 0, limit: int = 9) -> list[OpenSince[GroupId]]:
        since_ms = group.now_ms - age_ms
        return group.run(
            group.machine.transactions.open_transactions(open_since_ms=since_ms, limit=limit)
        )

    older = OpenSince(start_ms, OpenTransactionAt(GroupId(GROUP), PRODUCER_ID, 1))
    newer = OpenSince(start_ms + 10, OpenTransactionAt(GroupId(GROUP), PRODUCER_ID, 2))
    assert found() == [older, newer]
    assert found(age_ms=10) == [older]
    assert found(limit=1) == [older]
    group.marker(COMMIT, epoch=1)
    assert found() == [newer]

"""Joint transactions: a version is committed once (C19), and by a run that is not fenced (C16).

Semel answers no caller under the id of another owner (C17).
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from operator import attrgetter
from typing import Any

from semel_checker.calls import Call
from semel_checker.facts import Facts
from semel_checker.names import Joint, Outcome
from semel_checker.operations import EndJoint, Joined, JointEnded, JoinTransaction
from semel_checker.violations import Rule, Violation


class _Highest:
    """The highest version of each id before some point of the history."""

    def __init__(self, seen: Iterable[tuple[int, Joint]]) -> None:
        by_id: dict[str, list[tuple[int, int]]] = {}
        for index, joint in sorted(seen):
            by_id.setdefault(joint.transactional_id, []).append((index, joint.txn_version))
        self._indexes = {name: [index for index, _ in each] for name, each in by_id.items()}
        self._versions = {
            name: list(accumulate((version for _, version in each), max))
            for name, each in by_id.items()
        }

    def before(self, transactional_id: str, index: int) -> int:
        """Return the highest version of an id before an index of the history, -1 for none."""
        count = bisect_left(self._indexes.get(transactional_id, []), index)
        return self._versions[transactional_id][count - 1] if count else -1


def check_joint_commits(facts: Facts) -> list[Violation]:
    """C19: two runs never commit the same version."""
    committed: dict[tuple[str, int], Joint] = {}
    found: list[Violation] = []
    for end in facts.calls.of(EndJoint, JointEnded):
        joint = end.operation.joint
        was_committed = end.result is not None and end.result.already_committed
        if not end.operation.commit or end.outcome is not Outcome.OK or was_committed:
            continue
        first = committed.setdefault((joint.transactional_id, joint.txn_version), joint)
        if first != joint:
            what = (
                f"version {joint.txn_version} of {joint.transactional_id} is committed by the runs"
                f" {first.run} and {joint.run}"
            )
            found.append(facts.violation(Rule.C19, what, end))
    return found


def check_joins(facts: Facts) -> list[Violation]:
    """C19: a join is told that the version is committed if, and only if, it is."""
    ends = [end for end in facts.calls.of(EndJoint, JointEnded) if end.operation.commit]
    asked = _Highest((end.invoked, end.operation.joint) for end in ends)
    decided = _Highest(
        (end.returned, end.operation.joint) for end in ends if end.outcome is Outcome.OK
    )
    found: list[Violation] = []
    for join in facts.calls.of(JoinTransaction, Joined):
        transactional_id, version, _ = join.operation.joint
        if join.result is None or join.outcome is not Outcome.OK:
            continue
        what = ""
        if join.result.already_committed:
            if asked.before(transactional_id, join.returned) < version:
                what = "is called committed, and nobody had asked for it"
        elif decided.before(transactional_id, join.invoked) >= version:
            what = "was joined after it had been committed"
        if what:
            name = f"version {version} of {transactional_id}"
            found.append(facts.violation(Rule.C19, f"{name} {what}", join))
    return found


def check_joint_runs(facts: Facts) -> list[Violation]:
    """C16 for runs: once a newer run has joined, the one before commits nothing.

    Runs are ordered by first sight: a run is newer if it asked to join after the other had joined.
    """
    asked: dict[tuple[str, str], int] = {}
    joined: dict[tuple[str, str], int] = {}
    for join in facts.calls.of(JoinTransaction, Joined):
        run = (join.operation.joint.transactional_id, join.operation.joint.run)
        asked[run] = min(asked.get(run, join.invoked), join.invoked)
        if join.result is not None and join.result.writer is not None:
            joined[run] = min(joined.get(run, join.returned), join.returned)
    # The version of a "joint" here is where its run first asked to join.
    newest = _Highest((at, Joint(run[0], asked[run], run[1])) for run, at in joined.items())
    found: list[Violation] = []
    for end in facts.calls.of(EndJoint, JointEnded):
        transactional_id, version, run_name = end.operation.joint
        seen = joined.get((transactional_id, run_name))
        already = end.result is not None and end.result.already_committed
        if seen is None or not end.operation.commit or end.outcome is not Outcome.OK or already:
            continue
        if newest.before(transactional_id, end.invoked) > seen:
            what = f"run {run_name} committed version {version} of {transactional_id}"
            found.append(facts.violation(Rule.C16, f"{what} after a newer run had joined", end))
    return found


def check_joint_owners(facts: Facts) -> list[Violation]:
    """C17: an id has one owner, the first caller; no operator resets it in these histories."""
    heard: list[Call[Any, Any]] = []
    heard += facts.calls.of(JoinTransaction, Joined)
    heard += (end for end in facts.calls.of(EndJoint, JointEnded) if end.operation.commit)
    owners: dict[str, str] = {}
    found: list[Violation] = []
    for call in sorted(heard, key=attrgetter("returned")):
        if call.outcome is not Outcome.OK:
            continue
        name, owner = call.operation.joint.transactional_id, call.operation.owner
        first = owners.setdefault(name, owner)
        if owner != first:
            what = f"{name} is {first}'s, and {owner} was heard under it"
            found.append(facts.violation(Rule.C17, what, call))
    return found

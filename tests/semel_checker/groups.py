"""Consumer groups (C13, C14, C15): offsets are part of transactions, a record is taken once.

Where an operator has reset a group's offsets, or a member commits outside of transactions, repeats
are operators' wishes: C14 and C15 leave them out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from semel_checker.calls import Call
from semel_checker.facts import Facts, Written, within
from semel_checker.names import Outcome, Partition, TransactionState
from semel_checker.observations import FinalGroup
from semel_checker.operations import CommitOffsets, FetchOffsets, OffsetCommit, OffsetsFetched
from semel_checker.violations import Rule, Violation


class Place(NamedTuple):
    """A partition, as a group consumes it."""

    group: str
    partition: Partition

    def __str__(self) -> str:
        return f"{self.group} at {self.partition.topic}-{self.partition.partition}"


class _Commit(NamedTuple):
    """A group's offset that was, or may have been, committed.

    Commits are ordered by when they were stored, between `invoked` and `returned`; they are seen
    from `visible` on, at the latest from `settled` on.
    """

    call: Call[CommitOffsets, None]
    offset: int | None
    consumed_from: int | None
    returned: int
    visible: int
    settled: int
    is_definite: bool


class _Fetch(NamedTuple):
    """A group's offset that someone was told."""

    offset: int | None
    invoked: int
    returned: int
    call: Call[Any, Any] | None


def check_group_offsets(facts: Facts) -> list[Violation]:
    """C13: a fetch of offsets returns the latest offset of a committed transaction."""
    fetches = _fetches(facts)
    found: list[Violation] = []
    for place, commits in _commits(facts).items():
        found += _check_fetches(facts, place, commits, fetches.pop(place, []))
    for place, asked in fetches.items():
        found += _check_fetches(facts, place, [], asked)
    return found


def _commits(facts: Facts) -> dict[Place, list[_Commit]]:
    found: dict[Place, list[_Commit]] = {}
    for call in facts.calls.without_result(CommitOffsets):
        for offset in call.operation.offsets:
            commit = _commit(facts, call, offset)
            if commit is not None:
                place = Place(call.operation.group, offset.partition)
                found.setdefault(place, []).append(commit)
    return found


def _commit(facts: Facts, call: Call[CommitOffsets, None], offset: OffsetCommit) -> _Commit | None:
    """Return a commit as it may have taken effect; None if it did not."""
    writer = call.operation.writer
    returned, visible, settled = call.returned, call.invoked, call.returned
    is_definite = call.outcome is Outcome.OK
    if call.outcome is Outcome.FAILED:
        return None
    if writer is not None:
        transaction = facts.transactions.of(writer)
        state = transaction.state_of(writer)
        if state is TransactionState.ABORTED or transaction.commit_invoked is None:
            return None
        # It waited for the answer to every send of it, or may not have committed.
        settled = min(
            (each.returned for each in transaction.committed_by), default=len(facts.history)
        )
        returned = min(returned, settled)
        visible = transaction.commit_invoked
        is_definite = state is TransactionState.COMMITTED
    return _Commit(
        call=call,
        offset=None if offset.offset < 0 else offset.offset,
        consumed_from=offset.consumed_from,
        returned=returned,
        visible=visible,
        settled=settled,
        is_definite=is_definite,
    )


def _fetches(facts: Facts) -> dict[Place, list[_Fetch]]:
    found: dict[Place, list[_Fetch]] = {}
    for call in facts.calls.of(FetchOffsets, OffsetsFetched):
        if call.result is None or not call.operation.require_stable:
            continue
        for partition, offset in call.result.offsets:
            fetch = _Fetch(offset, call.invoked, call.returned, call)
            found.setdefault(Place(call.operation.group, partition), []).append(fetch)
    # The last reading comes after everything, wherever its event stands.
    end = len(facts.history)
    for _, final in facts.observed(FinalGroup):
        for partition, offset in final.offsets if not final.pending else ():
            fetch = _Fetch(offset, end + 1, end + 1, None)
            found.setdefault(Place(final.group, partition), []).append(fetch)
    return found


def _check_fetches(
    facts: Facts, place: Place, commits: list[_Commit], fetches: list[_Fetch]
) -> Iterator[Violation]:
    settled = sorted((c for c in commits if c.is_definite), key=lambda commit: commit.settled)
    keys = [commit.settled for commit in settled]
    latest = list(accumulate(settled, _later))
    by_offset: dict[int | None, list[_Commit]] = {}
    for commit in commits:
        by_offset.setdefault(commit.offset, []).append(commit)
    for fetch in fetches:
        count = bisect_left(keys, fetch.invoked)
        last = latest[count - 1] if count else None
        if fetch.offset is None and last is None:
            continue
        # A commit was overwritten if one that had begun after it was settled before the question.
        is_told = any(
            commit.visible < fetch.returned
            and (last is None or commit.returned >= last.call.invoked)
            for commit in reversed(by_offset.get(fetch.offset, []))
        )
        if not is_told:
            expected = "none" if last is None else str(last.offset)
            calls: list[Call[Any, Any]] = [last.call] if last else []
            calls += [fetch.call] if fetch.call else []
            what = f"{place} is told to be {fetch.offset}, the last committed is {expected}"
            yield facts.violation(Rule.C13, what, *calls)


def _later(one: _Commit, other: _Commit) -> _Commit:
    return max(one, other, key=lambda commit: commit.call.invoked)


def check_consumption(facts: Facts) -> list[Violation]:
    """C14 for records that were consumed twice, C13 for records that were passed over."""
    found: list[Violation] = []
    for place, commits in _commits(facts).items():
        if any(commit.call.operation.writer is None for commit in commits):
            continue
        known = [commit for commit in commits if commit.consumed_from is not None]
        definite = sorted(
            (c for c in known if c.is_definite), key=lambda c: (c.consumed_from or 0, c.offset or 0)
        )
        found += _check_repeats(facts, place, definite)
        found += _check_gaps(facts, place, definite, [c for c in known if not c.is_definite])
    return found


def _check_repeats(facts: Facts, place: Place, definite: list[_Commit]) -> Iterator[Violation]:
    furthest = None
    for commit in definite:
        if furthest is not None:
            start, end = commit.consumed_from or 0, min(commit.offset or 0, furthest.offset or 0)
            for offset in _visible(facts, place, start, end)[:1]:
                what = f"{place}: offset {offset} was consumed by two transactions"
                yield facts.violation(Rule.C14, what, furthest.call, commit.call)
        if furthest is None or (commit.offset or 0) > (furthest.offset or 0):
            furthest = commit


def _check_gaps(
    facts: Facts, place: Place, definite: list[_Commit], maybe: list[_Commit]
) -> Iterator[Violation]:
    maybe = sorted(maybe, key=lambda commit: commit.consumed_from or 0)
    starts = [commit.consumed_from or 0 for commit in maybe]
    ends = list(accumulate((commit.offset or 0 for commit in maybe), max))
    reached = None
    for before, commit in pairwise(definite):
        reached = max(reached or 0, before.offset or 0)
        start = commit.consumed_from or 0
        skipped = _visible(facts, place, reached, start)
        perhaps = bisect_right(starts, start)
        if skipped and not (perhaps and ends[perhaps - 1] > skipped[0]):
            what = f"{place}: offset {skipped[0]} was passed over"
            yield facts.violation(Rule.C13, what, before.call, commit.call)


def _visible(facts: Facts, place: Place, start: int, end: int) -> list[int]:
    log = facts.log(place.partition)
    return [
        offset
        for offset in within(log.visible_offsets, start, end)
        if (written := facts.written.get(log.visible[offset])) is None
        or not facts.is_excused(written)
    ]


def check_balance(facts: Facts) -> list[Violation]:
    """C15: the committed outputs' sources are the records before the group's offsets, each once."""
    outputs = _outputs(facts)
    found = [
        facts.violation(
            Rule.C15,
            f"{place}: offset {offset} has the derived records {', '.join(map(str, derived))}",
            *(written.call for written in derived),
        )
        for place, by_offset in outputs.items()
        for offset, derived in by_offset.items()
        if len(derived) > 1
    ]
    deriving = {place.group for place in outputs}
    commits = _commits(facts)
    for _, final in facts.observed(FinalGroup):
        if final.group not in deriving or final.pending:
            continue
        for partition, offset in final.offsets:
            place = Place(final.group, partition)
            mine = commits.get(place, [])
            if all(commit.call.operation.writer is not None for commit in mine):
                found += _check_place(facts, place, offset or 0, mine, outputs.get(place, {}))
    return found


Outputs = dict[int, list[Written]]
"""The records that were derived of the records of a partition, by their offsets."""


def _outputs(facts: Facts) -> dict[Place, Outputs]:
    """Return the derived records that are there in the end, or were."""
    found: dict[Place, Outputs] = {}
    for written in facts.written.values():
        source = written.record.source
        if source is None or facts.state_of(written) is not TransactionState.COMMITTED:
            continue
        if facts.is_visible(written) or facts.is_excused(written):
            outputs = found.setdefault(Place(source.group, source.partition), {})
            outputs.setdefault(source.offset, []).append(written)
    return found


def _check_place(
    facts: Facts, place: Place, end: int, commits: list[_Commit], outputs: Outputs
) -> Iterator[Violation]:
    begun = [commit.consumed_from for commit in commits if commit.consumed_from is not None]
    for offset in _visible(facts, place, min(begun, default=0), end):
        if offset not in outputs:
            what = f"{place}: offset {offset} is consumed and has no derived record"
            yield facts.violation(Rule.C15, what)
    for offset, derived in outputs.items():
        if offset >= end:
            what = f"{place}: {derived[0]} is derived of offset {offset}, the group stands at {end}"
            yield facts.violation(Rule.C15, what, derived[0].call)

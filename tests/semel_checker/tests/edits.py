"""Changes to recorded histories: each makes the history of a broken system."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar, cast

from semel_checker.check import check
from semel_checker.history import Event, Invoked, Returned
from semel_checker.names import Outcome, Partition
from semel_checker.observations import FinalPartition, Observation
from semel_checker.operations import Operation, Polled, PolledRecord, Result
from semel_checker.violations import Rule

T = TypeVar("T")
What = Invoked | Returned | Observation


def rules(history: list[Event]) -> set[Rule]:
    """Return which rules a history breaks."""
    return {violation.rule for violation in check(history)}


def assert_found(good: list[Event], bad: list[Event], *expected: Rule) -> None:
    """Assert that the one history is right, and the other breaks just these rules."""
    assert [str(violation) for violation in check(good)] == []
    found = check(bad)
    assert {violation.rule for violation in found} == set(expected), "\n".join(map(str, found))


def edit(events: list[Event], kind: type[T], change: Callable[[T], T | None]) -> list[Event]:
    """Change all observations of a kind; None leaves one as it is."""
    return [
        replace(event, what=cast(What, change(event.what) or event.what))
        if isinstance(event.what, kind)
        else event
        for event in events
    ]


def edit_final(
    events: list[Event], partition: Partition, change: Callable[[FinalPartition], FinalPartition]
) -> list[Event]:
    """Change the last reading of a partition."""
    return edit(
        events, FinalPartition, lambda each: change(each) if each.partition == partition else None
    )


def show(events: list[Event], partition: Partition, offset: int, value: str) -> list[Event]:
    """Let the last reading show one more value."""

    def change(final: FinalPartition) -> FinalPartition:
        shown = sorted([*final.committed, PolledRecord(offset, value)])
        return replace(final, committed=tuple(shown))

    return edit_final(events, partition, change)


def hide(events: list[Event], partition: Partition, *values: str) -> list[Event]:
    """Let the last reading not show some values."""

    def change(final: FinalPartition) -> FinalPartition:
        return replace(
            final,
            committed=tuple(each for each in final.committed if each.value not in values),
            uncommitted=tuple(each for each in final.uncommitted or () if each.value not in values),
        )

    return edit_final(events, partition, change)


def edit_return(
    events: list[Event],
    kind: type,
    change: Callable[[Returned], Returned],
    *,
    number: int = -1,
) -> list[Event]:
    """Change the return of one operation of a kind, the last if no other is named."""
    ops = [
        event.what.op
        for event in events
        if isinstance(event.what, Invoked) and isinstance(event.what.operation, kind)
    ]
    return edit(events, Returned, lambda each: change(each) if each.op == ops[number] else None)


def answer_with(
    events: list[Event],
    kind: type,
    result: Result | None,
    *,
    number: int = -1,
    outcome: Outcome = Outcome.OK,
) -> list[Event]:
    """Let one operation of a kind return something else."""
    return edit_return(
        events, kind, lambda each: replace(each, outcome=outcome, result=result), number=number
    )


def edit_operation(
    events: list[Event], kind: type[T], change: Callable[[T], Operation], *, number: int = -1
) -> list[Event]:
    """Change the fields of one operation of a kind: the named one, or the last."""
    found = [
        index
        for index, event in enumerate(events)
        if isinstance(event.what, Invoked) and isinstance(event.what.operation, kind)
    ]
    event = events[found[number]]
    assert isinstance(event.what, Invoked)
    assert isinstance(event.what.operation, kind)
    changed = replace(event.what, operation=change(event.what.operation))
    return [replace(each, what=changed) if each is event else each for each in events]


def without(events: list[Event], *kinds: type) -> list[Event]:
    """Leave observations out."""
    return [event for event in events if not isinstance(event.what, kinds)]


def insert(events: list[Event], index: int, observation: Observation) -> list[Event]:
    """Add an observation before the event of an index."""
    at_ms = events[index].at_ms
    return [
        *events[:index],
        Event(at_ms=at_ms, process="harness", what=observation),
        *events[index:],
    ]


def polled(result: Result | None, records: Iterable[tuple[int, str]]) -> Polled:
    """Return a poll of one partition with other records."""
    assert isinstance(result, Polled)
    (read,) = result.reads
    found = tuple(PolledRecord(*record) for record in records)
    return Polled(reads=(replace(read, records=found),))

"""Every change to the history of a correct system breaks a rule."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from semel_checker.check import check
from semel_checker.facts import gather
from semel_checker.history import Event
from semel_checker.names import Isolation, Outcome, TransactionState
from semel_checker.observations import FinalGroup, FinalPartition, FinalTransaction
from semel_checker.operations import (
    EndTransaction,
    GroupOffset,
    Poll,
    Polled,
    PolledRecord,
)
from semel_checker.tests.edits import answer_with, edit, edit_final
from semel_checker.tests.model import P0
from semel_checker.tests.test_random_histories import Run

Change = Callable[[list[Event], random.Random], list[Event] | None]


def lose_a_record(events: list[Event], chance: random.Random) -> list[Event] | None:
    final, facts = any_final(events, chance), gather(events)
    if final is None:
        return None
    value = chance.choice(final.committed).value
    written = facts.written[value]
    # A value that no client knew of, or that compaction may have taken, is no loss.
    is_maybe = not written.transactional and written.call.outcome is Outcome.UNKNOWN
    if (is_maybe and value not in facts.sightings) or facts.is_excused(written):
        return None
    kept = tuple(each for each in final.committed if each.value != value)
    return edit_final(events, final.partition, lambda each: replace(each, committed=kept))


def any_final(events: list[Event], chance: random.Random) -> FinalPartition | None:
    found = [
        event.what
        for event in events
        if isinstance(event.what, FinalPartition) and event.what.committed
    ]
    return chance.choice(found) if found else None


def show_an_aborted_record(events: list[Event], chance: random.Random) -> list[Event] | None:
    facts = gather(events)
    found = [
        written
        for written in facts.written.values()
        if written.offset is not None and facts.state_of(written) is TransactionState.ABORTED
    ]
    if not found:
        return None
    written = chance.choice(found)
    shown = PolledRecord(written.offset or 0, written.record.value)
    return edit_final(
        events,
        written.partition,
        lambda each: replace(each, committed=tuple(sorted([*each.committed, shown]))),
    )


def repeat_a_record(events: list[Event], chance: random.Random) -> list[Event] | None:
    final = any_final(events, chance)
    if final is None:
        return None
    repeated = PolledRecord(final.high_watermark, chance.choice(final.committed).value)
    end = final.high_watermark + 1
    return edit_final(
        events,
        final.partition,
        lambda each: replace(
            each,
            committed=(*each.committed, repeated),
            high_watermark=end,
            last_stable_offset=end,
        ),
    )


def leave_a_record_out_of_a_poll(events: list[Event], chance: random.Random) -> list[Event] | None:
    facts = gather(events)
    polls = [
        (number, call.result)
        for number, call in enumerate(facts.calls.of(Poll, Polled))
        if call.operation.isolation is Isolation.READ_COMMITTED
        and call.result is not None
        and any(read.records for read in call.result.reads)
    ]
    if not polls:
        return None
    number, result = chance.choice(polls)
    read = chance.choice([read for read in result.reads if read.records])
    gone = chance.choice(read.records)
    # Compaction may have taken the same records before.
    if gone not in facts.finals[read.partition].committed:
        return None
    kept = replace(read, records=tuple(record for record in read.records if record != gone))
    reads = tuple(kept if each is read else each for each in result.reads)
    return answer_with(events, Poll, Polled(reads=reads), number=number)


def move_a_group(events: list[Event], chance: random.Random) -> list[Event]:
    by = chance.choice((-1, 1))
    return edit(
        events,
        FinalGroup,
        lambda group: replace(
            group,
            offsets=tuple(
                GroupOffset(partition, (offset or 0) + by)
                for partition, offset in group.offsets or (GroupOffset(P0, 1),)
            ),
        ),
    )


def refuse_a_commit(events: list[Event], chance: random.Random) -> list[Event] | None:
    facts = gather(events)
    ends = [
        number
        for number, call in enumerate(facts.calls.without_result(EndTransaction))
        if call.operation.commit and call.outcome is Outcome.OK
    ]
    if not ends:
        return None
    number = chance.choice(ends)
    return answer_with(events, EndTransaction, None, number=number, outcome=Outcome.FAILED)


def turn_a_decision(events: list[Event], chance: random.Random) -> list[Event] | None:
    told = [event.what for event in events if isinstance(event.what, FinalTransaction)]
    # Of a commit without an answer, the coordinator alone knows, unless markers tell too.
    told = [each for each in told if each.partitions]
    if not told:
        return None
    chosen = chance.choice(told)
    was = chosen.state is TransactionState.COMMITTED
    state = TransactionState.ABORTED if was else TransactionState.COMMITTED
    return edit(
        events,
        FinalTransaction,
        lambda each: replace(each, state=state) if each == chosen else None,
    )


def turn_a_marker(events: list[Event], chance: random.Random) -> list[Event] | None:
    found = [e.what for e in events if isinstance(e.what, FinalPartition) and e.what.markers]
    if not found:
        return None
    final = chance.choice(found)
    assert final.markers is not None
    turned = chance.choice(final.markers)
    markers = tuple(
        marker._replace(commit=not marker.commit) if marker == turned else marker
        for marker in final.markers
    )
    return edit_final(events, final.partition, lambda each: replace(each, markers=markers))


CHANGES: tuple[Change, ...] = (
    lose_a_record,
    show_an_aborted_record,
    repeat_a_record,
    leave_a_record_out_of_a_poll,
    move_a_group,
    refuse_a_commit,
    turn_a_decision,
    turn_a_marker,
)


@pytest.mark.parametrize("change", CHANGES, ids=[change.__name__ for change in CHANGES])
@given(seed=st.integers(min_value=0, max_value=2**32))
@settings(max_examples=30)
def test_a_changed_history_breaks_a_rule(change: Change, seed: int) -> None:
    changed = change(Run(seed).events(), random.Random(seed))
    assume(changed is not None)
    assert changed is not None
    assert check(changed)

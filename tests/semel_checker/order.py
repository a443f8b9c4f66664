"""The order of polls (C7, C11) and of sends (C8)."""

from collections.abc import Iterator
from itertools import pairwise

from semel_checker.facts import Facts, Reading, Written, within
from semel_checker.names import Partition, TransactionState, Writer
from semel_checker.observations import Assigned, Positioned
from semel_checker.operations import Send, Sent
from semel_checker.violations import Rule, Violation

NO_PRODUCER_ID = 0
"""Sends without idempotence, which no rule keeps in order."""


def check_polls(facts: Facts) -> list[Violation]:
    """C7, and C11 if an earlier poll had seen the record that was left out."""
    seen = _first_seen(facts)
    found: list[Violation] = []
    for reading in facts.readings:
        found += _check_offsets(facts, reading)
        found += (_skipped(facts, reading, offset, seen) for offset in _left_out(facts, reading))
    found += _check_positions(facts)
    return found


def _first_seen(facts: Facts) -> dict[object, int]:
    """Return where each transaction was first seen: the index of the poll's return."""
    found: dict[object, int] = {}
    for value, index in facts.sightings.items():
        written = facts.written.get(value)
        if written is not None and written.transactional:
            unit = facts.transactions.unit_of(written.writer)
            found[unit] = min(index, found.get(unit, index))
    return found


def _check_offsets(facts: Facts, reading: Reading) -> Iterator[Violation]:
    offsets = [record.offset for record in reading.read.records]
    for before, after in pairwise(offsets):
        if after <= before:
            yield facts.violation(Rule.C7, f"offset {after} came after {before}", reading.call)
    position, after_all = reading.read.position, reading.read.next_position
    for offset in (offset for offset in offsets if position is not None and offset < position):
        yield facts.violation(Rule.C7, f"offset {offset} came at position {position}", reading.call)
    for offset in (offset for offset in offsets if after_all is not None and offset >= after_all):
        what = f"offset {offset} came, and the position after it is {after_all}"
        yield facts.violation(Rule.C7, what, reading.call)


def _left_out(facts: Facts, reading: Reading) -> list[int]:
    """Return the offsets that a poll went past and should have returned."""
    if reading.start is None or reading.end is None:
        return []
    expected = _expected(facts, reading.read.partition, committed=reading.committed)
    got = {record.offset for record in reading.read.records}
    return [
        offset
        for offset in within(expected, reading.start, reading.end)
        if offset not in got and not _may_be_absent(facts, reading, offset)
    ]


def _expected(facts: Facts, partition: Partition, *, committed: bool) -> list[int]:
    log = facts.log(partition)
    return log.visible_offsets if committed else log.offsets


def _may_be_absent(facts: Facts, reading: Reading, offset: int) -> bool:
    """Tell whether a record was perhaps cut off or compacted away before the poll."""
    written = _any_written(facts, reading.read.partition, offset)
    if written is not None and facts.is_cut(written):
        return True
    topic = facts.topics.get(reading.read.partition.topic)
    if topic is None or not topic.compacted:
        return False
    if written is None or facts.state_of(written) is not TransactionState.COMMITTED:
        return True
    return facts.may_be_replaced(written, offset, reading.call.returned)


def _any_written(facts: Facts, partition: Partition, offset: int) -> Written | None:
    values = sorted(facts.log(partition).values[offset])
    return next((facts.written[value] for value in values if value in facts.written), None)


def _skipped(facts: Facts, reading: Reading, offset: int, seen: dict[object, int]) -> Violation:
    written = _any_written(facts, reading.read.partition, offset)
    calls = [reading.call] if written is None else [written.call, reading.call]
    name = written or "its record"
    if written is not None and written.transactional and reading.committed:
        unit = facts.transactions.unit_of(written.writer)
        if seen.get(unit, len(facts.history)) < reading.call.invoked:
            what = f"{name} at {offset} was left out, after its transaction had been seen"
            return facts.violation(Rule.C11, what, *calls)
    return facts.violation(Rule.C7, f"{name} at offset {offset} was left out", *calls)


def _check_positions(facts: Facts) -> list[Violation]:
    """C7 between the polls of a consumer: each goes on where the one before ended."""
    steps: list[tuple[int, Reading | Assigned | Positioned]] = [
        *((reading.call.returned, reading) for reading in facts.readings),
        *facts.observed(Assigned),
        *facts.observed(Positioned),
    ]
    positions: dict[str, dict[Partition, int]] = {}
    found: list[Violation] = []
    for _, step in sorted(steps, key=lambda step: step[0]):
        if isinstance(step, Reading):
            held = positions.setdefault(step.call.operation.consumer, {})
            found += _check_position(facts, step, held)
        else:
            held = positions.setdefault(step.consumer, {})
            _move(step, held)
    return found


def _move(step: Assigned | Positioned, held: dict[Partition, int]) -> None:
    if isinstance(step, Assigned):
        for partition in held.keys() - set(step.partitions):
            del held[partition]
        return
    for partition, offset in step.positions:
        if offset is None:
            held.pop(partition, None)
        else:
            held[partition] = offset


def _check_position(
    facts: Facts, reading: Reading, held: dict[Partition, int]
) -> Iterator[Violation]:
    partition, start, end = reading.read.partition, reading.start, reading.end
    if start is None or end is None:
        return
    expected = held.get(partition, start)
    held[partition] = end
    place = f"{partition.topic}-{partition.partition}"
    if start < expected:
        what = f"a poll of {place} began at {start}, the one before had ended at {expected}"
        yield facts.violation(Rule.C7, what, reading.call)
        return
    offsets = _expected(facts, partition, committed=reading.committed)
    for offset in within(offsets, expected, start):
        if not _may_be_absent(facts, reading, offset) and not _is_cut(facts, partition, offset):
            what = f"offset {offset} of {place} was left out between two polls"
            yield facts.violation(Rule.C7, what, reading.call)


def _is_cut(facts: Facts, partition: Partition, offset: int) -> bool:
    written = _any_written(facts, partition, offset)
    return written is not None and facts.is_excused(written)


def check_sends(facts: Facts) -> list[Violation]:
    """C8."""
    last: dict[tuple[Writer, Partition], int] = {}
    found: list[Violation] = []
    for call in facts.calls.of(Send, Sent):
        send = call.operation
        if call.result is None or send.writer.producer_id == NO_PRODUCER_ID:
            continue
        key = (send.writer, send.partition)
        base = call.result.base_offset
        if base <= last.get(key, -1):
            what = f"{send.records[0].value} was stored at {base}, an earlier one at {last[key]}"
            found.append(facts.violation(Rule.C8, what, call))
        last[key] = base + len(send.records) - 1
    return found

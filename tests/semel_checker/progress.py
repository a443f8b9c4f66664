"""Offsets of logs (C18) and that everything goes on once faults are over (C23)."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from semel_checker.calls import Call
from semel_checker.facts import Facts, Reading
from semel_checker.names import Outcome, Partition, TransactionState, Writer
from semel_checker.observations import (
    FaultEnded,
    FaultInjected,
    FaultsOver,
    FinalGroup,
    FinalPartition,
    FinalTransaction,
    RunStarted,
)
from semel_checker.operations import LogProbed, OpenTransaction, ProbeLog, Send, Sent
from semel_checker.violations import Rule, Violation

Probe = Call[ProbeLog, LogProbed]


def check_log_offsets(facts: Facts) -> list[Violation]:
    """C18: the offsets of each partition, as probes, polls and the last reading saw them."""
    probes: dict[Partition, list[Probe]] = {}
    for call in facts.calls.of(ProbeLog, LogProbed):
        if call.result is not None:
            probes.setdefault(call.operation.partition, []).append(call)
    found: list[Violation] = []
    for probe in probes.values():
        found += _check_probes(facts, probe)
    found += _check_readings(facts, probes)
    for final in facts.finals.values():
        found += _check_final(facts, final)
    return found


def _check_probes(facts: Facts, probes: list[Probe]) -> Iterator[Violation]:
    answered = sorted(probes, key=lambda probe: probe.returned)
    returns = [probe.returned for probe in answered]
    highest = list(accumulate(map(_offsets, answered), lambda a, b: tuple(map(max, a, b))))
    for probe in probes:
        start, stable, end = found = _offsets(probe)
        if not start <= stable <= end:
            what = f"log start {start}, last stable offset {stable}, high watermark {end}"
            yield facts.violation(Rule.C18, what, probe)
        before = bisect_left(returns, probe.invoked)
        if before and any(now < was for now, was in zip(found, highest[before - 1], strict=True)):
            what = f"offsets fell from {highest[before - 1]} to {found}"
            yield facts.violation(Rule.C18, what, probe)


def _offsets(probe: Probe) -> tuple[int, ...]:
    assert probe.result is not None
    result = probe.result
    return (result.log_start_offset, result.last_stable_offset, result.high_watermark)


def _check_readings(facts: Facts, probes: dict[Partition, list[Probe]]) -> Iterator[Violation]:
    """No poll goes past an offset that is told to be the end later."""
    invoked: dict[Partition, list[int]] = {}
    lowest: dict[Partition, list[tuple[int, ...]]] = {}
    for partition, each in probes.items():
        invoked[partition] = [probe.invoked for probe in each]
        falling = accumulate(map(_offsets, reversed(each)), lambda a, b: tuple(map(min, a, b)))
        lowest[partition] = list(falling)[::-1]
    for reading in facts.readings:
        partition = reading.read.partition
        after = bisect_left(invoked.get(partition, []), reading.call.returned)
        limits = [_limit(reading, each) for each in lowest.get(partition, [])[after : after + 1]]
        final = facts.finals.get(partition)
        if final is not None:
            limits.append(_limit(reading, (0, final.last_stable_offset, final.high_watermark)))
        if reading.end is not None and reading.end > min(limits, default=reading.end):
            what = f"read up to {reading.end}, the end was told to be {min(limits)} later"
            yield facts.violation(Rule.C18, what, reading.call)


def _limit(reading: Reading, offsets: tuple[int, ...]) -> int:
    return offsets[1] if reading.committed else offsets[2]


def _check_final(facts: Facts, final: FinalPartition) -> Iterator[Violation]:
    start, stable, end = final.log_start_offset, final.last_stable_offset, final.high_watermark
    place = f"{final.partition.topic}-{final.partition.partition}"
    if not start <= stable <= end:
        what = f"{place}: log start {start}, last stable offset {stable}, high watermark {end}"
        yield facts.violation(Rule.C18, what)
    if any(offset >= stable for offset, _ in final.committed):
        yield facts.violation(Rule.C18, f"{place}: read committed past the end at {stable}")
    open_from = first_open(facts, final)
    if open_from is not None and open_from < stable:
        what = f"{place}: the last stable offset is {stable}, a transaction is open at {open_from}"
        yield facts.violation(Rule.C18, what)


def first_open(facts: Facts, final: FinalPartition) -> int | None:
    """Return the first offset of a transaction that has no marker; None if all have."""
    if final.uncommitted is None or final.markers is None:
        return None
    closed = {marker.writer for marker in final.markers}
    for offset, value, writer in final.uncommitted:
        written = facts.written.get(value)
        if writer is not None and writer not in closed and written and written.transactional:
            # Compaction takes a marker away once nothing of it is needed.
            topic = facts.topics.get(final.partition.topic)
            if topic is None or not topic.compacted:
                return offset
    return None


def check_hanging(facts: Facts) -> list[Violation]:
    """C18: no transaction is open longer than its time-out; the time of faults does not count."""
    started = next((start for _, start in facts.observed(RunStarted)), None)
    if started is None:
        return []
    quiet = _quiet_since(facts)
    found: list[Violation] = []
    for call in facts.calls.of(ProbeLog, LogProbed):
        since = quiet[call.invoked]
        if call.result is None or since is None:
            continue
        for held in call.result.open_transactions:
            overdue_ms = _overdue_ms(held, call.returned_ms, since, started)
            if overdue_ms > 0:
                what = f"{tuple(held.writer)} is open {overdue_ms} ms longer than it may be"
                found.append(facts.violation(Rule.C18, what, call))
    return found


def _overdue_ms(held: OpenTransaction, now_ms: int, quiet_ms: int, run: RunStarted) -> int:
    if held.prepared:
        return 0
    due_ms = max(now_ms - held.age_ms + run.transaction_timeout_ms, quiet_ms) + run.slack_ms
    return now_ms - due_ms


def _quiet_since(facts: Facts) -> list[int | None]:
    """Return, for each event, since when no fault was active; None while one is."""
    active: set[int] = set()
    since = facts.history[0].at_ms if facts.history else 0
    found: list[int | None] = []
    for event in facts.history:
        match event.what:
            case FaultInjected(fault=fault, lasting=lasting):
                since = event.at_ms
                if lasting:
                    active.add(fault)
            case FaultEnded(fault=fault):
                since = event.at_ms
                active.discard(fault)
            case FaultsOver():
                since = event.at_ms
                active.clear()
            case _:
                pass
        found.append(None if active else since)
    return found


def check_progress(facts: Facts) -> list[Violation]:
    """C23."""
    prepared = {
        final.writer
        for _, final in facts.observed(FinalTransaction)
        if final.state is TransactionState.PREPARED
    }
    return [*_idle_partitions(facts), *_unfinished(facts, prepared)]


def _idle_partitions(facts: Facts) -> Iterator[Violation]:
    limits = [start.progress_ms for _, start in facts.observed(RunStarted)]
    over = [(index, facts.history[index].at_ms) for index, _ in facts.observed(FaultsOver)]
    if not over or not limits or limits[0] is None:
        return
    index, at_ms = over[-1]
    deadline_ms = at_ms + limits[0]
    alive = {
        call.operation.partition
        for call in facts.calls.of(Send, Sent)
        if call.invoked > index and _taken_ms(facts, call) <= deadline_ms
    }
    for topic in facts.topics.values():
        for number in range(topic.partitions):
            if Partition(topic.topic, number) not in alive:
                what = f"{topic.topic}-{number} took no transaction in the {limits[0]} ms after all"
                yield facts.violation(Rule.C23, f"{what} faults")


def _taken_ms(facts: Facts, call: Call[Send, Sent]) -> float:
    """Return when a send was known to be there for good."""
    if call.outcome is not Outcome.OK:
        return float("inf")
    if not call.operation.transactional:
        return call.returned_ms
    attempts = facts.transactions.of(call.operation.writer).committed_by
    returned = min((attempt.returned for attempt in attempts), default=None)
    return float("inf") if returned is None else facts.history[returned].at_ms


def _unfinished(facts: Facts, prepared: set[Writer]) -> Iterator[Violation]:
    for final in facts.finals.values():
        if final.last_stable_offset < final.high_watermark and not prepared:
            what = f"{final.partition.topic}-{final.partition.partition} is held at"
            what += f" {final.last_stable_offset} below {final.high_watermark}"
            yield facts.violation(Rule.C23, what)
    for _, group in facts.observed(FinalGroup):
        for writer in sorted(set(group.pending) - prepared):
            yield facts.violation(
                Rule.C23, f"offsets of {tuple(writer)} are pending in {group.group}"
            )
    for _, told in facts.observed(FinalTransaction):
        if told.state is TransactionState.ONGOING:
            yield facts.violation(Rule.C23, f"{tuple(told.writer)} is never decided")

"""Lost values (C5, C6, C20, C22) and damage that was not noticed (C21)."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from semel_checker.facts import Facts, Written
from semel_checker.names import Partition, TransactionState
from semel_checker.observations import DamageReported, FaultEnded, FaultInjected, FaultKind
from semel_checker.violations import Rule, Violation

CRASHES = (FaultKind.KILL, FaultKind.POWER_LOSS, FaultKind.ROLLED_BACK, FaultKind.CORRUPTION)


class Loss(NamedTuple):
    """A committed record that is not there."""

    written: Written
    rule: Rule
    why: str


def check_losses(facts: Facts) -> list[Violation]:
    """C5, C6 and C20: the lost values, each under one rule; C22: their share of all values."""
    lost = list(losses(facts))
    found = [
        facts.violation(loss.rule, f"{loss.written} {loss.why}", loss.written.call) for loss in lost
    ]
    return found + _lost_parts(facts, {loss.written.record.value for loss in lost})


def losses(facts: Facts) -> Iterator[Loss]:
    """Yield each committed record that is missing, unless it is part of a torn transaction."""
    crashes = [i for i, fault in facts.observed(FaultInjected) if fault.kind in CRASHES]
    last_crash = max(crashes, default=-1)
    covered = _covered(facts)
    for written in facts.written.values():
        if not _must_be_there(facts, written) or facts.is_excused(written):
            continue
        if facts.is_visible(written):
            if written.partition in facts.finals and facts.in_final(written.record.value) is None:
                yield Loss(written, Rule.C20, "was read, and is gone in the end")
        elif facts.has_ended_below(written):
            yield _lost(facts, written, last_crash)
        elif written.offset is not None and written.offset < covered.get(written.partition, 0):
            yield Loss(written, Rule.C5, "is committed, and was left out by all who read past it")


def _must_be_there(facts: Facts, written: Written) -> bool:
    if facts.state_of(written) is not TransactionState.COMMITTED:
        return False
    transaction = facts.transaction_of(written)
    # Where others of the transaction are visible, it is torn: C10.
    return transaction is None or not transaction.seen or facts.is_visible(written)


def _lost(facts: Facts, written: Written, last_crash: int) -> Loss:
    if last_crash > written.call.returned:
        return Loss(written, Rule.C20, "was committed, and is gone after a crash")
    last = max(facts.log(written.partition).visible_offsets, default=-1)
    if written.offset is not None and written.offset < last:
        return Loss(written, Rule.C5, f"is committed, and missing below offset {last}")
    return Loss(written, Rule.C6, "is committed, and is not read in the end")


def _covered(facts: Facts) -> dict[Partition, int]:
    """Return how far the committed readers got that read from a partition's start."""
    found: dict[Partition, int] = {}
    for reading in sorted(
        (r for r in facts.readings if r.committed and r.start is not None),
        key=lambda r: (r.read.partition, r.start or 0),
    ):
        partition = reading.read.partition
        if (reading.start or 0) <= found.get(partition, 0):
            found[partition] = max(found.get(partition, 0), reading.end or 0)
    return found


def _lost_parts(facts: Facts, lost: set[str]) -> list[Violation]:
    if not lost:
        return []
    by_producer: dict[tuple[int, Partition], list[Written]] = {}
    for written in facts.written.values():
        if facts.state_of(written) is TransactionState.COMMITTED:
            key = (written.writer.producer_id, written.partition)
            by_producer.setdefault(key, []).append(written)
    found: list[Violation] = []
    for (producer_id, partition), sent in by_producer.items():
        runs = [
            (gone, len(list(run))) for gone, run in groupby(w.record.value in lost for w in sent)
        ]
        if not any(gone for gone, _ in runs):
            continue
        what = (
            f"producer {producer_id} lost {_part(runs)} of its {len(sent)} records in"
            f" {partition.topic}-{partition.partition}"
        )
        calls = [written.call for written in sent if written.record.value in lost]
        found.append(facts.violation(Rule.C22, what, *calls))
    return found


def _part(runs: list[tuple[bool, int]]) -> str:
    count = sum(length for gone, length in runs if gone)
    match [gone for gone, _ in runs]:
        case [True]:
            return "all"
        case [True, False]:
            return f"the first {count}"
        case [False, True]:
            return f"the last {count}"
        case _:
            return f"{count} in the middle"


def check_damage(facts: Facts) -> list[Violation]:
    """C21."""
    noticed = {damage.fault for _, damage in facts.observed(DamageReported)}
    mended = {ended.fault for _, ended in facts.observed(FaultEnded)}
    return [
        facts.violation(Rule.C21, f"fault {fault.fault}, {fault.kind} of {fault.target}, unnoticed")
        for _, fault in facts.observed(FaultInjected)
        if fault.kind in (FaultKind.CORRUPTION, FaultKind.ROLLED_BACK)
        and fault.fault not in noticed | mended
    ]

"""Single values (C1, C2, C3, C4, C12): each value read was sent, committed, and has one place."""

from semel_checker.facts import Facts, Reading, Written
from semel_checker.names import Outcome, Partition, TransactionState, Writer
from semel_checker.observations import FinalPartition
from semel_checker.operations import Send, Sent
from semel_checker.violations import Rule, Violation


def check_aborted_reads(facts: Facts) -> list[Violation]:
    """C1, and C17 where the commit must have been that of an earlier transaction."""
    found: list[Violation] = []
    readers = {
        value: reading.call
        for reading in reversed(facts.readings)
        if reading.committed
        for _, value in reading.read.records
    }
    for value, written in facts.written.items():
        if facts.state_of(written) is TransactionState.ABORTED and facts.is_visible(written):
            rule, why = _why_aborted(facts, written)
            what = f"{value} was read committed, but {why}"
            reader = [readers[value]] if value in readers else []
            found.append(facts.violation(rule, what, written.call, *reader))
    for final in facts.finals.values():
        found += _uncovered(facts, final)
    return found


def _why_aborted(facts: Facts, written: Written) -> tuple[Rule, str]:
    transaction = facts.transaction_of(written)
    if transaction is None or written.call.outcome is Outcome.FAILED:
        return Rule.C1, "its send was refused"
    name = _name(written.writer)
    if transaction.attempts or transaction.aborted_by:
        return Rule.C1, f"{name} is aborted"
    if facts.transactions.earlier_end(written.writer):
        return Rule.C17, f"the commit of {name} was never asked for, that of an earlier one was"
    return Rule.C1, f"the commit of {name} was never asked for"


def _uncovered(facts: Facts, final: FinalPartition) -> list[Violation]:
    """C1: the index leads readers past every record of an aborted transaction."""
    if final.uncommitted is None or final.markers is None or final.aborted is None:
        return []
    first: dict[Writer, int] = {}
    for offset, _, writer in final.uncommitted:
        if writer is not None:
            first.setdefault(writer, offset)
    ranges = {(entry.writer, entry.marker_offset): entry.first_offset for entry in final.aborted}
    return [
        facts.violation(
            Rule.C1,
            f"the aborted index of {_place(final.partition)} does not cover {_name(marker.writer)}"
            f" from {first[marker.writer]} to its marker at {marker.offset}",
        )
        for marker in final.markers
        if not marker.commit
        and marker.writer in first
        and ranges.get((marker.writer, marker.offset), marker.offset) > first[marker.writer]
    ]


def check_precommitted_reads(facts: Facts) -> list[Violation]:
    """C2."""
    return [
        facts.violation(
            Rule.C2, f"{value} was read before its commit was asked for", written.call, reading.call
        )
        for reading in facts.readings
        if reading.committed
        for _, value in reading.read.records
        if (written := facts.written.get(value)) is not None
        and facts.state_of(written) is not TransactionState.ABORTED
        and _is_too_early(facts, written, reading)
    ]


def _is_too_early(facts: Facts, written: Written, reading: Reading) -> bool:
    transaction = facts.transaction_of(written)
    if transaction is None:
        return reading.call.returned < written.call.invoked
    own = reading.call.operation.transaction
    if own is not None and facts.transactions.unit_of(own) == transaction.unit:
        return True
    asked = transaction.commit_invoked
    return asked is not None and reading.call.returned < asked


def check_offsets(facts: Facts) -> list[Violation]:
    """C3, and that a conditional append was stored where it was asked to be."""
    found = [
        facts.violation(
            Rule.C3,
            f"offset {offset} of {_place(partition)} holds {', '.join(sorted(values))}",
            *(facts.written[value].call for value in sorted(values) if value in facts.written),
        )
        for partition, log in facts.logs.items()
        for offset, values in log.values.items()
        if len(values) > 1
    ]
    for call in facts.calls.of(Send, Sent):
        expected = call.operation.expected_base_offset
        if expected is not None and call.result and call.result.base_offset != expected:
            what = f"asked to be stored at {expected}, was stored at {call.result.base_offset}"
            found.append(facts.violation(Rule.C3, what, call))
    return found


def check_duplicates(facts: Facts) -> list[Violation]:
    """C4."""
    places: dict[str, list[tuple[Partition, int]]] = {}
    for partition, log in facts.logs.items():
        for offset, values in log.values.items():
            for value in values:
                places.setdefault(value, []).append((partition, offset))
    return [
        facts.violation(
            Rule.C4,
            f"{value} is at {', '.join(f'{_place(p)}@{o}' for p, o in sorted(found))}",
            *([facts.written[value].call] if value in facts.written else []),
        )
        for value, found in places.items()
        if len(found) > 1
    ]


def check_phantoms(facts: Facts) -> list[Violation]:
    """C12."""
    return [
        facts.violation(Rule.C12, f"{value} at {_place(partition)}@{offset} was sent by nobody")
        for partition, log in facts.logs.items()
        for offset, values in log.values.items()
        for value in sorted(values)
        if value not in facts.written
    ]


def _place(partition: Partition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _name(writer: Writer) -> str:
    return f"transaction {writer.producer_id}/{writer.producer_epoch}"

"""What must be true at the end: the clients' own account against what the logs hold."""

from collections import Counter
from collections.abc import Iterable, Mapping

from simulation.ledger import Ledger, Outcome, Read, TopicPartition

Logs = Mapping[TopicPartition, list[Read]]


def verdict(ledger: Ledger, committed: Logs, everything: Logs) -> list[str]:
    """Return what is wrong with the end of a simulation."""
    return [
        *_agreement(committed, everything),
        *_transactions(ledger, committed),
        *_plain(ledger, committed),
        *_stored(ledger, committed, everything),
        *_readers(ledger, committed, everything),
        *_transformed(committed),
    ]


def _agreement(committed: Logs, everything: Logs) -> Iterable[str]:
    for place, reads in committed.items():
        offsets = [read.offset for read in everything[place]]
        if offsets != sorted(set(offsets)):
            yield f"{place}: offsets are not rising: {offsets}"
        missing = set(reads) - set(everything[place])
        if missing:
            yield f"{place}: committed readers see what others do not: {sorted(missing)[:3]}"
        twice = [value for value, n in Counter(r.value for r in reads).items() if n > 1]
        if twice:
            yield f"{place}: stored twice: {twice[:3]}"


def _transactions(ledger: Ledger, committed: Logs) -> Iterable[str]:
    seen = {(place, read.value) for place, reads in committed.items() for read in reads}
    for txn in ledger.txns:
        sent = list(zip(txn.sent_to, txn.values, strict=True))
        visible = [each for each in sent if each in seen]
        definite = txn.outcome is not Outcome.UNKNOWN
        if definite and txn.outcome is not Outcome.COMMITTED and visible:
            yield f"{txn.process} {txn.number} is {txn.outcome}, but is seen: {visible[:3]}"
        if visible and len(visible) < len(sent) and not _unsent_tail(txn.outcome):
            yield f"{txn.process} {txn.number} is torn: {len(visible)} of {len(sent)} are seen"
        if txn.outcome is Outcome.COMMITTED and len(visible) < len(sent):
            yield f"{txn.process} {txn.number} is committed, but {sent} are not all seen"
    known = ledger.writer.keys() | ledger.plain.keys()
    for place, value in sorted(seen):
        if place[0] != "out" and value not in known:
            yield f"{place}: {value} was sent by nobody"


def _unsent_tail(outcome: Outcome) -> bool:
    """Whether the last value may never have left: nothing was committed then."""
    return outcome is Outcome.OPEN


def _plain(ledger: Ledger, committed: Logs) -> Iterable[str]:
    positions = {
        read.value: (place, read.offset) for place, reads in committed.items() for read in reads
    }
    for value, acknowledged in ledger.plain.items():
        if acknowledged and value not in positions:
            yield f"{value} was acknowledged, and is lost"
    for (producer, place), values in ledger.order.items():
        offsets = [positions[value][1] for value in values if value in positions]
        if offsets != sorted(offsets):
            yield f"{place}: records of {producer} are out of order: {values}"


def _stored(ledger: Ledger, committed: Logs, everything: Logs) -> Iterable[str]:
    for value, (topic, partition, offset) in ledger.stored.items():
        place = (topic, partition)
        writer = ledger.writer.get(value)
        sure = writer is None or writer.outcome is Outcome.COMMITTED
        logs = committed if sure else everything
        if Read(offset, value) not in logs[place]:
            yield f"{place}: {value} was acknowledged at {offset}, and is not there"


def _readers(ledger: Ledger, committed: Logs, everything: Logs) -> Iterable[str]:
    for (reader, place), reads in ledger.reads.items():
        log = committed[place] if reader.startswith("read_committed") else everything[place]
        if reads != log[: len(reads)]:
            at = next(i for i, read in enumerate(reads) if log[i : i + 1] != [read])
            yield f"{place}: {reader} read {reads[at]} where the log has {log[at : at + 1]}"


def _transformed(committed: Logs) -> Iterable[str]:
    expected = Counter(
        f"{place[1]}@{read.offset}|{read.value}"
        for place, reads in committed.items()
        if place[0] == "in"
        for read in reads
    )
    made = Counter(
        read.value for place, reads in committed.items() if place[0] == "out" for read in reads
    )
    if made != expected:
        yield f"inputs without output: {sorted((expected - made).elements())[:5]}"
        yield f"outputs too many: {sorted((made - expected).elements())[:5]}"



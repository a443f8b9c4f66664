"""`semel check` of a broker: each batch of each log is there, and is the one that was written.

The journal says which logs there are, from where to where, and where batches may be missing.
"""

from collections.abc import Iterable
from itertools import chain

from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine, LogLimits
from semel_broker.machine.log.gaps import is_allowed
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.storage.batch_integrity import what_is_wrong
from semel_runtime.journal.contract import Entry
from semel_runtime.journal.sqlite.file_check import JournalFile
from semel_runtime.machine import UnknownRecordError


def check(journal: JournalFile, instance_id: int) -> int:
    """Note what is damaged in the records and batches of a broker; return how many were read."""
    machine = BrokerMachine(instance_id, LogLimits())
    count = _replayed(machine, journal)
    for log in machine.logs():
        is_copy = log.identity.leader_id != instance_id and not log.identity.taken_over
        count += _check_log(journal, log, whole=journal.is_sound and not is_copy)
    return count


def _replayed(machine: BrokerMachine, journal: JournalFile) -> int:
    """Replay what is sound, up to where records are missing: what follows does not fit any more."""
    serde, count = BrokerSerde(), 0
    entries: Iterable[Entry] = chain(journal.snapshot(), journal.records())
    for offset, data in entries:
        count += 1
        if not journal.is_sound:
            continue
        try:
            machine.replay(offset, serde.decode(data))
        except UnknownRecordError:
            raise
        except Exception as error:  # noqa: BLE001 - a record that its machine cannot take is damage
            journal.note_unsound(f"record {offset}", f"does not fit those before it: {error!r}")
    return count


def _check_log(journal: JournalFile, log: PartitionLog, *, whole: bool) -> int:
    """Check the batches of one log; return how many there are.

    Of a copy that is not ``whole``, its leader knows where batches may be missing.
    """
    name = f"topic {log.identity.topic!r}, partition {log.partition.partition}"
    count, at = 0, log.log_start_offset
    for batch in journal.batches(log.log_id, at, name=name):
        place = f"{name}, offset {batch.base_offset}"
        problem = what_is_wrong(batch, log.log_id)
        if problem is not None:
            journal.note(place, f"the batch {problem}")
        elif count and batch.base_offset < at:
            journal.note(place, f"the batch begins before offset {at}, where the last one ends")
        elif whole:
            _check_gap(journal, log, at, batch.base_offset)
        at = batch.base_offset + batch.record_count
        count += 1
    if whole:
        _check_gap(journal, log, at, log.log_end_offset)
        if at > log.log_end_offset:
            journal.note(name, f"has batches up to offset {at}, past its end {log.log_end_offset}")
    return count


def _check_gap(journal: JournalFile, log: PartitionLog, at: int, end: int) -> None:
    if at < end and not is_allowed(log.gaps, at, end):
        journal.note(
            f"topic {log.identity.topic!r}, partition {log.partition.partition}, offset {at}",
            f"no batch is found between offsets {at} and {end}",
        )

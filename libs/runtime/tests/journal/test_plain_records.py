"""A table maps records with the fields of their messages."""

import pytest
from msgspec import Struct

from semel.broker.journal.v1.log_pb2 import Record
from semel.group.journal.v1.journal_pb2 import JournalRecord
from semel_runtime.journal.plain_records import PlainRecords


class OpenTransaction(Struct, frozen=True, kw_only=True):
    """A field of it may be absent."""

    log_id: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    start_ms: int
    superseded_ms: int | None = None


class LogPurged(Struct, frozen=True, kw_only=True):
    """It has one field."""

    log_id: int


class ProducerState(Struct, frozen=True, kw_only=True):
    """A field of it has many entries."""

    group_id: str
    producer_id: int
    fence: int
    producer_epoch: int
    last_sequence: int
    last_ended_ms: int
    crc32cs: tuple[int, ...] = ()


TABLE = PlainRecords[OpenTransaction | LogPurged](
    Record.DESCRIPTOR, {"open_transaction": OpenTransaction, "log_purged": LogPurged}
)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (
            OpenTransaction(log_id=1, producer_id=2, producer_epoch=0, first_offset=4, start_ms=5),
            "open_transaction",
        ),
        (
            OpenTransaction(
                log_id=1,
                producer_id=2,
                producer_epoch=3,
                first_offset=4,
                start_ms=5,
                superseded_ms=0,
            ),
            "open_transaction",
        ),
        (LogPurged(log_id=0), "log_purged"),
    ],
)
def test_a_record_comes_back_as_it_was(record: OpenTransaction | LogPurged, kind: str) -> None:
    written = Record()
    TABLE.write(record, written)
    read = Record.FromString(written.SerializeToString())
    assert read.WhichOneof("record") == kind
    assert TABLE.read(kind, read) == record


def test_entries_come_back_as_a_tuple() -> None:
    table = PlainRecords[ProducerState](JournalRecord.DESCRIPTOR, {"producer_state": ProducerState})
    record = ProducerState(
        group_id="g",
        producer_id=1,
        fence=2,
        producer_epoch=-1,
        last_sequence=0,
        last_ended_ms=0,
        crc32cs=(7, 8),
    )
    written = JournalRecord()
    table.write(record, written)
    assert table.read("producer_state", written) == record


def test_names_outside_of_the_table_are_not_read() -> None:
    assert TABLE.read("log_state", Record()) is None
    assert TABLE.read(None, Record()) is None


def test_a_record_without_the_fields_of_its_message_has_no_table() -> None:
    with pytest.raises(AssertionError, match="has not the fields of OpenTransaction"):
        PlainRecords[LogPurged](Record.DESCRIPTOR, {"open_transaction": LogPurged})

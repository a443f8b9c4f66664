"""Records of every kind go to the disk and come back."""

import pytest

from semel.broker.journal.v1.log_pb2 import Record
from semel_broker.journal.record_serde import BrokerSerde
from semel_runtime.machine import UnknownRecordError

KINDS = [field.name for field in Record.DESCRIPTOR.oneofs_by_name["record"].fields]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_each_kind_is_read_and_written(kind: str) -> None:
    message = Record()
    getattr(message, kind).SetInParent()
    serde = BrokerSerde()
    written = serde.encode(serde.decode(message.SerializeToString()))
    assert Record.FromString(written).WhichOneof("record") == kind


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownRecordError, match="does not know"):
        BrokerSerde().decode(b"")

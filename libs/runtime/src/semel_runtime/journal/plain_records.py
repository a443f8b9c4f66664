"""Records whose fields are those of their messages: a table maps them, field by field.

A journal's message has one kind of record in its oneof.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct

from semel_common.wire.messages.plain_messages import PlainMessage

R = TypeVar("R", bound=Struct)


class PlainRecords(Generic[R]):
    """The plain records of a journal, each under its name in the journal's message."""

    def __init__(self, journal: Descriptor, kinds: Mapping[str, type[R]]) -> None:
        """Check that each kind of record has the fields of its message."""
        self._names = {kind: name for name, kind in kinds.items()}
        self._messages: dict[str, PlainMessage[R, Message]] = {}
        for name, kind in kinds.items():
            message = journal.fields_by_name[name].message_type
            assert message is not None, f"{name} is no message"
            self._messages[name] = PlainMessage(kind, GetMessageClass(message))

    def write(self, record: R, out: Message) -> None:
        """Fill an empty message of the journal with a record."""
        name = self._names[type(record)]
        self._messages[name].write(record, getattr(out, name))

    def read(self, name: str | None, journal: Message) -> R | None:
        """Return the record in a message of the journal; None: its name is not in the table."""
        if name is None or name not in self._messages:
            return None
        return self._messages[name].read(getattr(journal, name))

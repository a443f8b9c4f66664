"""Requests by the grammar of the contracts: fields hold right, near and hostile values.

Some strings and ids are those of resources on the stage, so that a message passes its first check;
others are templates, paths, control characters, very long, or of another kind. Now and then a list
is long, a payload is compressed, or a few bytes of the finished message are changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

from fuzz.mutation import broken
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from hostile.attacks.payloads import bomb
from hostile.callers import Caller
from hostile.stage import TOPIC
from semel.common.v1.records_pb2 import Codec, RecordBatch
from semel.coordinator.v1.acls_pb2 import DeleteAclsRequest
from semel.coordinator.v1.cluster_pb2 import CreatePartitionsRequest, CreateTopicsRequest
from semel.coordinator.v1.quotas_pb2 import AlterClientQuotasRequest
from semel_common.record_batches.batches import Columns, seal

HOSTILE_TEXT = (
    "",
    "writer-{",
    "writer-{reason.__class__}",
    "writer-%s%n",
    "writer-\x00",
    "../../../etc/passwd",
    "writer-\u202e\ufffd",
    "writer-" + "x" * 300,
    "'; DROP TABLE batches; --",
)
LONG_TEXT = "w" * 70_000
LONG_LIST = 3_000
LONG_TEXT_SHARE = 0.01
DEPTH_MAX = 5
MUCH_BYTES = 64 << 10
_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The resources that a message may name, so that it gets far."""

    topic_ids: Sequence[str]
    producer_ids: Sequence[int]

    def texts(self, field: str) -> Sequence[str]:
        """Return right values of a field of text, by the field's name."""
        if "topic_id" in field:
            return self.topic_ids
        if field in {"topic", "topics", "name"}:
            return (TOPIC, f"{Caller.WRITER}-other")
        if field == "principal":
            return (f"User:{Caller.WRITER}",)
        return (f"{Caller.WRITER}-1", f"{Caller.WRITER}-2", Caller.WRITER)


class Grammar:
    """Makes requests; the same seed makes the same ones."""

    def __init__(self, random: Random, known: Known) -> None:
        self._random = random
        self._known = known
        self._bomb = bomb()

    def request(self, of: type[Message]) -> bytes:
        """Return the bytes of a request; those of one in ten are broken."""
        data = self.whole_request(of)
        return broken(data, self._random) if self._random.random() < 0.1 else data

    def broken_request(self, of: type[Message]) -> bytes:
        """Return the bytes of a request, a few of them changed."""
        return broken(self.whole_request(of), self._random)

    def whole_request(self, of: type[Message]) -> bytes:
        """Return the bytes of a request that can be read."""
        message = of()
        self._fill(message, 0)
        if tame := _TAMED.get(of):
            tame(message, self._random)
        return message.SerializeToString()

    def _fill(self, message: Message, depth: int) -> None:
        if isinstance(message, RecordBatch):
            self._fill_batch(message)
            return
        for field in message.DESCRIPTOR.fields:
            if self._random.random() < 0.85:
                self._set(message, cast("FieldDescriptor", field), depth)

    def _set(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            self._set_map(message, field)
        elif field.message_type is not None:
            if depth < DEPTH_MAX:
                self._set_message(message, field, depth)
        elif field.is_repeated:
            value, length = self._value(field), self._length()
            weight = len(value) if isinstance(value, str | bytes) else 10
            if weight * length < MUCH_BYTES:
                getattr(message, field.name).extend([value] * length)
        else:
            setattr(message, field.name, self._value(field))

    def _set_message(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        if not field.is_repeated:
            within = getattr(message, field.name)
            within.SetInParent()
            self._fill(within, depth + 1)
            return
        items = getattr(message, field.name)
        length = self._length()
        if length:
            self._fill(items.add(), depth + 1)
        if length > 1 and items[0].ByteSize() * length < MUCH_BYTES:
            items.extend([items[0]] * (length - 1))

    def _set_map(self, message: Message, field: FieldDescriptor) -> None:
        assert field.message_type is not None
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields[1]
        if value.message_type is None:
            entries = getattr(message, field.name)
            entries[self._value(key)] = self._value(value)

    def _fill_batch(self, batch: RecordBatch) -> None:
        random = self._random
        if random.random() < 0.1:
            batch.CopyFrom(self._bomb)
            return
        values: list[bytes | None] = [b"value"] * random.choice((1, 1, 3))
        columns = Columns(
            values=values, keys=None, timestamps_ms=[1_700_000_000_000] * len(values), headers={}
        )
        batch.CopyFrom(
            seal(
                columns,
                producer_id=random.choice((0, 0, -1, *self._known.producer_ids)),
                producer_epoch=random.choice((0, 0, 1, 2**62, -1)),
                base_sequence=random.choice((0, 0, 1, 2**31 - 1, -1)),
                transactional=random.random() < 0.4,
                codec=random.choice((Codec.CODEC_UNSPECIFIED, Codec.CODEC_ZSTD)),
            )
        )

    def _length(self) -> int:
        return self._random.choice((0, 1, 1, 1, 2, 2, 5, LONG_LIST))

    def _value(self, field: FieldDescriptor) -> object:
        random = self._random
        if field.cpp_type in _BOUNDS:
            return self._number(field)
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
                return random.choice((b"", b"\0", random.randbytes(24), bytes(5_000)))
            case FieldDescriptor.CPPTYPE_STRING:
                if random.random() < LONG_TEXT_SHARE:
                    return LONG_TEXT
                right = random.random() < 0.7
                return random.choice(self._known.texts(field.name) if right else HOSTILE_TEXT)
            case FieldDescriptor.CPPTYPE_ENUM:
                return random.choice((0, 1, 1, 2, 2, 3, 99))
            case FieldDescriptor.CPPTYPE_BOOL:
                return random.random() < 0.5
            case _:
                return random.choice((0.0, -1.0, 1e-320, 0.001, 1e308, float("inf"), float("nan")))

    def _number(self, field: FieldDescriptor) -> int:
        random = self._random
        lowest, highest = _BOUNDS[field.cpp_type]
        if field.name == "producer_id" and random.random() < 0.7:
            return random.choice(self._known.producer_ids)
        if field.name.endswith("_ms"):
            return random.choice((0, 1, 10, 50, 60_000, -1, lowest, highest))
        return random.choice((0, 0, 0, 1, 1, 2, -1, lowest, highest))


def _tame_quotas(message: Message, _: Random) -> None:
    """Let the quotas be the writer's own: an administrator may throttle all others by right."""
    assert isinstance(message, AlterClientQuotasRequest)
    for change in message.changes:
        change.user = Caller.WRITER


def _tame_rules(message: Message, _: Random) -> None:
    """Let the rules be the writer's own: an administrator may take all others away by right."""
    assert isinstance(message, DeleteAclsRequest)
    for each in message.filters:
        each.principal = f"User:{Caller.WRITER}-other"


def _tame_topics(message: Message, random: Random) -> None:
    """Let counts be small or out of range: large topics are an administrator's right, and dear."""
    assert isinstance(message, CreateTopicsRequest)
    for topic in message.topics:
        topic.partitions = random.choice((1, 2, 0, -1, 2**31 - 1))


def _tame_partitions(message: Message, random: Random) -> None:
    assert isinstance(message, CreatePartitionsRequest)
    for topic in message.topics:
        topic.partitions = random.choice((1, 2, 3, 0, -1, 2**31 - 1))


_TAMED: dict[type[Message], Callable[[Message, Random], None]] = {
    AlterClientQuotasRequest: _tame_quotas,
    CreatePartitionsRequest: _tame_partitions,
    CreateTopicsRequest: _tame_topics,
    DeleteAclsRequest: _tame_rules,
}

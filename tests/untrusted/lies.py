"""The answers of a liar, in the place of the true ones."""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, cast

from fuzz.mutation import broken, edited
from google.protobuf import any_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from semel.common.v1.errors_pb2 import Error, ErrorCode
from semel_common.wire.messages.wire_format import varint
from semel_common.wire.methods import Method

BOMB_ELEMENTS = 1 << 21
"""More than a client takes, at two bytes each."""
_DETAIL_NAMES = (
    "outcome",
    "next_epoch",
    "reason",
    "log_end_offset",
    "log_start_offset",
    "high_watermark",
    "throttle_time_ms",
    "error_class",
    "message",
    "self",
    "field",
)
_DETAIL_VALUES = (
    "",
    "COMMITTED",
    "ABORTED",
    "-1",
    "0",
    "7",
    "9" * 5_000,
    str(2**63),
    "\x1b[2J",
    "RETRIABLE",
    "٣",
)


class Lie(NamedTuple):
    """One answer: bytes, or a failed call; neither: silence."""

    name: str
    data: bytes | None = None
    trailer: bytes | None = None
    """The ``grpc-status-details-bin`` of a failed call."""


Liar = Callable[[Method[Message, Message], Message, Random], Lie]


def lie(method: Method[Message, Message], truth: Message, random: Random) -> Lie:
    """Return the answer in the place of the true one."""
    return random.choices(_LIES, _WEIGHTS)[0](method, truth, random)


def field_bomb(message: type[Message], elements: int = BOMB_ELEMENTS) -> bytes:
    """Return a message with so many empty messages in its first list of them."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and field.is_repeated:
            return (varint(field.number << 3 | 2) + b"\x00") * elements
    return b"\x08\x01" * elements


def _garbage(_: Method[Message, Message], __: Message, random: Random) -> Lie:
    return Lie("garbage", random.randbytes(random.choice((1, 3, 20, 300))))


def _empty(_: Method[Message, Message], __: Message, ___: Random) -> Lie:
    return Lie("empty", b"")


def _broken(_: Method[Message, Message], truth: Message, random: Random) -> Lie:
    return Lie("broken", broken(truth.SerializeToString(), random))


def _edited(_: Method[Message, Message], truth: Message, random: Random) -> Lie:
    return Lie("edited", edited(truth, [truth], random).SerializeToString())


def _rearranged(_: Method[Message, Message], truth: Message, random: Random) -> Lie:
    changed = type(truth)()
    changed.CopyFrom(truth)
    _rearrange(changed, random)
    return Lie("rearranged", changed.SerializeToString())


def _rearrange(message: Message, random: Random) -> None:
    """Drop, repeat, swap or refuse items of one list, at any level."""
    lists = [
        getattr(message, field.name)
        for field in cast("Sequence[FieldDescriptor]", message.DESCRIPTOR.fields)
        if field.is_repeated and field.message_type is not None
        if not field.message_type.GetOptions().map_entry and getattr(message, field.name)
    ]
    if not lists:
        return
    items = random.choice(lists)
    chosen = random.choice(items)
    match random.randrange(5):
        case 0:
            items.remove(chosen)
        case 1:
            items.append(chosen)
        case 2:
            items.sort(key=lambda _: random.random())
        case 3 if "error" in chosen.DESCRIPTOR.fields_by_name:
            chosen.error.CopyFrom(_error(random))
        case _:
            _rearrange(chosen, random)


def _other(method: Method[Message, Message], truth: Message, random: Random) -> Lie:
    """Answer with the bytes of the request's type, or of the answer within itself."""
    data = truth.SerializeToString()
    return Lie(
        "other", random.choice((method.request().SerializeToString(), data + data, data * 3))
    )


def _bomb(method: Method[Message, Message], _: Message, random: Random) -> Lie:
    elements = random.choice((1_000, 10_000, BOMB_ELEMENTS if random.random() < 0.02 else 100))
    return Lie("bomb", field_bomb(method.response, elements))


def _nested(_: Method[Message, Message], __: Message, random: Random) -> Lie:
    depth = random.choice((50, 200, 5_000))
    return Lie("nested", b"\xfb\x01" * depth + b"\xfc\x01" * depth)


def _silence(_: Method[Message, Message], __: Message, ___: Random) -> Lie:
    return Lie("silence")


def _refused(_: Method[Message, Message], __: Message, random: Random) -> Lie:
    return Lie("refused", trailer=_status(random).SerializeToString())


def _refused_badly(_: Method[Message, Message], __: Message, random: Random) -> Lie:
    trailer = _status(random).SerializeToString()
    return Lie("refused badly", trailer=random.choice((b"\xff", broken(trailer, random))))


def _status(random: Random) -> status_pb2.Status:
    reason = random.choice((*(name[11:] for name in ErrorCode.keys()), "", "NO_SUCH_REASON"))  # noqa: SIM118 - an enum
    info = error_details_pb2.ErrorInfo(
        reason=reason, domain=random.choice(("semel", "semel", "x")), metadata=_details(random)
    )
    packed = any_pb2.Any()
    packed.Pack(info)
    return status_pb2.Status(
        code=random.choice((0, 2, 13, 14)), message=_text(random), details=[packed]
    )


def _error(random: Random) -> Error:
    return Error(
        code=random.choice((*ErrorCode.values(), 77_777)),  # type: ignore[arg-type]  # any number
        message=_text(random),
        metadata=_details(random),
        error_class=random.choice((0, 1, 2, 3, 4, 5, 6, 7, 99)),  # type: ignore[arg-type]  # any
    )


def _details(random: Random) -> dict[str, str]:
    return {
        random.choice(_DETAIL_NAMES): random.choice(_DETAIL_VALUES)
        for _ in range(random.randrange(4))
    }


def _text(random: Random) -> str:
    return random.choice(("", "told", "{reason.__class__}", "\x1b[31m\r\n\0", "ß" * 2_000))


_WEIGHTED: Sequence[tuple[Liar, int]] = (
    (_edited, 30),
    (_rearranged, 20),
    (_broken, 10),
    (_refused, 10),
    (_empty, 6),
    (_garbage, 6),
    (_refused_badly, 5),
    (_other, 4),
    (_bomb, 3),
    (_nested, 3),
    (_silence, 1),
)
_LIES = tuple(liar for liar, _ in _WEIGHTED)
_WEIGHTS = tuple(weight for _, weight in _WEIGHTED)


def frame_error(random: Random) -> Error:
    """Return any error, for a frame."""
    return _error(random)

"""The checks of fields of answers; each check raises ``Unfit``."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, Protocol, TypeVar

from google.protobuf.message import Message

from semel.common.v1.errors_pb2 import Error
from semel.common.v1.participants_pb2 import Participants
from semel_common.addresses import PORT_MAX, is_host

INT64_MAX = (1 << 63) - 1
TOKEN_MAX_BYTES = 4_096
"""The longest token that a client repeats: producer tokens, and those of pages."""
TIME_MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: calendars of programs end there."""

_ID_MAX_CHARACTERS = 65_536
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class Unfit(ValueError):  # noqa: N818 - a value, which the connector makes an error of
    """A field of an answer has a value that cannot be believed."""

    def __init__(self, field: str, value: object, why: str) -> None:
        """``why`` is a predicate: ``is below 0``."""
        super().__init__(f"{field} {value!r} {why}")
        self.field = field
        self.value = value
        self.why = why


class Refusable(Protocol):
    """One result of many, which may be an error."""

    @property
    def error(self) -> Error: ...

    def HasField(self, field_name: Literal["error"]) -> bool: ...  # noqa: N802 - protobuf's name


def at_least(field: str, value: int, least: int = 0) -> None:
    """Check that a number is not too small."""
    if value < least:
        raise Unfit(field, value, f"is below {least}")


def within(field: str, value: int, least: int, most: int) -> None:
    """Check that a number is in a range."""
    if not least <= value <= most:
        raise Unfit(field, value, f"is not within {least} to {most}")


def moment(field: str, value: int) -> None:
    """Check a time in milliseconds; 0 is none."""
    within(field, value, 0, TIME_MAX_MS)


def same(field: str, value: object, asked: object) -> None:
    """Check that an answer repeats what was asked for."""
    if value != asked:
        raise Unfit(field, value, f"is not {asked!r}, as was asked for")


def one_of(field: str, value: object, known: Collection[object]) -> None:
    """Check that a value is one that this client knows."""
    if value not in known:
        raise Unfit(field, value, "is not known to this client")


def counted(field: str, answered: Sequence[object], asked: Sequence[object]) -> None:
    """Check that there are as many results as questions."""
    if len(answered) != len(asked):
        raise Unfit(f"number of {field}", len(answered), f"is not {len(asked)}, as was asked for")


_Asked = TypeVar("_Asked")
_Result = TypeVar("_Result")


def paired(
    field: str, asked: Sequence[_Asked], answered: Sequence[_Result]
) -> Iterator[tuple[_Asked, _Result]]:
    """Return each question with its result; checks that there are as many of both."""
    counted(field, answered, asked)
    return zip(asked, answered, strict=True)


def distinct(field: str, values: Iterable[object]) -> None:
    """Check that nothing comes twice."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise Unfit(field, value, "comes twice")
        seen.add(value)


def identified(field: str, text: str) -> None:
    """Check that an id is there, and has a bounded length."""
    if not text:
        raise Unfit(field, text, "is empty")
    if len(text) > _ID_MAX_CHARACTERS:
        raise Unfit(field, text, f"has {len(text):,} characters")


def topic_name(field: str, text: str) -> None:
    """Check that a topic can have this name."""
    if _TOPIC_NAME.fullmatch(text) is None:
        raise Unfit(field, text, "is no name of a topic")


def token(field: str, value: bytes) -> None:
    """Check what a client has to repeat in every request."""
    if len(value) > TOKEN_MAX_BYTES:
        raise Unfit(field, f"of {len(value):,} bytes", f"is longer than {TOKEN_MAX_BYTES:,} bytes")


def host_and_port(field: str, host: str, port: int) -> None:
    """Check that there can be something to connect to."""
    if not is_host(host):
        raise Unfit(f"{field}.host", host, "is no host")
    within(f"{field}.port", port, 1, PORT_MAX)


def check_page(request: Message, answer: Message) -> None:
    """Check what an answer says of the next page of a list, if it is of a list."""
    following: str = getattr(answer, "next_page_token", "")
    if not following:
        return
    if len(following) > TOKEN_MAX_BYTES:
        raise Unfit("next_page_token", following, f"has {len(following):,} characters")
    if following == getattr(request, "page_token", ""):
        raise Unfit("next_page_token", following, "is the token of this page")


def refusal(field: str, error: Error) -> None:
    """Check that an error is one."""
    if error.code == 0:
        raise Unfit(f"{field}.code", 0, "is no error")


def is_refused(field: str, result: Refusable) -> bool:
    """Return whether a result is an error; checks that it is one."""
    if not result.HasField("error"):
        return False
    refusal(f"{field}.error", result.error)
    return True


def named_participants(field: str, named: Participants) -> None:
    """Check partitions and groups."""
    for topic in named.topics:
        identified(f"{field}.topic_id", topic.topic_id)
        for partition in topic.partitions:
            at_least(f"{field}.partition", partition)
    for group_id in named.group_ids:
        identified(f"{field}.group_id", group_id)

"""How messages name resources: fields are found by the paths that the table of needs gives."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from google.protobuf.message import Message


class Ref(NamedTuple):
    """A resource as a message names it: a topic by name, by id, or by both; all else by name."""

    name: str
    topic_id: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is named."""
        return not self.name and not self.topic_id


def refs_at(message: object, path: str) -> Iterator[Ref]:
    """Yield what is named at a path; repeated fields on the way give all there are."""
    by_id = path.rpartition(".")[2] in ("topic_id", "topic_ids")
    for value in _values(message, path.split(".") if path else []):
        yield ref_of(value, by_id=by_id)


def any_at(message: Message, paths: Iterable[str]) -> bool:
    """Whether anything but a default is at one of some paths."""
    return any(value for path in paths for value in _values(message, path.split(".")))


def ref_of(value: object, *, by_id: bool = False) -> Ref:
    """Return what a name, or a message with ``topic`` or ``topic_id``, is about."""
    if isinstance(value, str):
        return Ref("", value) if by_id else Ref(value)
    return Ref(getattr(value, "topic", ""), getattr(value, "topic_id", ""))


def parents_at(message: object, path: str) -> Iterator[tuple[Message, str]]:
    """Yield the messages that have the last field of a path, with its name."""
    *steps, last = path.split(".")
    for parent in _values(message, steps):
        assert isinstance(parent, Message), f"{path} goes through a field that is no message"
        yield parent, last


def is_given(message: Message, field: str) -> bool:
    """Whether a field says anything: an optional one is there, another is not its default."""
    if message.DESCRIPTOR.fields_by_name[field].has_presence:
        return message.HasField(field)
    return bool(getattr(message, field))


def _values(value: object, steps: list[str]) -> Iterator[object]:
    if not steps:
        yield value
        return
    found = getattr(value, steps[0])
    for value_found in found if _is_repeated(found) else (found,):
        yield from _values(value_found, steps[1:])


def _is_repeated(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)

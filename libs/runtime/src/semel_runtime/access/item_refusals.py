"""Requests of many items: the guard takes out refused items, and answers them in their places."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple, Protocol

from google.protobuf.message import Message

from semel.common.v1.errors_pb2 import Error
from semel.common.v1.participants_pb2 import TRANSACTION_RESULT_ABORT
from semel_common.errors import SemelError
from semel_common.wire.messages.request_bounds import BOUNDS
from semel_common.wire.status import to_value
from semel_runtime.access.acls import ResourceType
from semel_runtime.access.resource_names import Ref, is_given, parents_at, ref_of, refs_at
from semel_runtime.access.rpc_permissions import Each, Ended, Shown
from semel_runtime.server.form_checks import require_count

Refuse = Callable[[Each, Ref], SemelError | None]
WhyNotEnded = Callable[[Ended, Ref], SemelError | None]
MayDescribe = Callable[[ResourceType, Ref], bool]

_SHOWN_PER_STEP = 400
"""Entries of an answer that one step looks at: two milliseconds."""


class Answers(Protocol):
    """A repeated field."""

    def add(self) -> Message:
        """Add an empty message to it."""
        ...


class _Item(NamedTuple):
    """One item of a request, and why it is refused, if it is."""

    clause: Each
    item: object
    error: SemelError | None


class Refusals:
    """The refused items of one request, in their places among the others."""

    def __init__(self, request: Message, items: list[_Item]) -> None:
        self._request = request
        self._items = items

    @property
    def leaves_nothing(self) -> bool:
        """Whether all of it is refused."""
        return all(each.error is not None for each in self._items)

    def allowed(self, at_once: str) -> Message:
        """Return the request without the refused items; ``at_once`` is the wait that it has not."""
        request = type(self._request)()
        request.CopyFrom(self._request)
        for clause, items in groupby(self._items, key=lambda each: each.clause):
            kept = [each.item for each in items if each.error is None]
            request.ClearField(clause.items)
            getattr(request, clause.items).extend(kept)
        if at_once:
            request.ClearField(at_once)
        return request

    def answer(self, response: Message) -> None:
        """Put the refusals where the response has their places."""
        field = self._items[0].clause.answers
        given = iter(getattr(response, field))
        merged = type(response)()
        answers = getattr(merged, field)
        values: dict[int, Error] = {}
        for clause, item, error in self._items:
            if error is not None:
                value = values.get(id(error))
                if value is None:
                    value = values[id(error)] = to_value(error)
                _refuse(answers, clause, item, value)
            elif not clause.only_refused:
                count = len(getattr(item, clause.per)) if clause.per else 1
                answers.extend(islice(given, count))
        answers.extend(given)
        response.ClearField(field)
        response.MergeFrom(merged)


def split(clauses: Iterable[Each], request: Message, refuse: Refuse) -> Refusals | None:
    """Look at each item of a request; None if no item is refused."""
    items: list[_Item] = []
    refused = False
    for clause in clauses:
        if clause.unless and is_given(request, clause.unless):
            continue
        if clause.when is not None and getattr(request, clause.when[0]) != clause.when[1]:
            continue
        by_id = clause.items == "topic_ids"
        entries = getattr(request, clause.items)
        require_count(clause.items, entries, maximum=_count_max(request, clause.items))
        for item in entries:
            named = getattr(item, clause.key) if clause.key else item
            error = refuse(clause, ref_of(named, by_id=by_id))
            refused = refused or error is not None
            items.append(_Item(clause, item, error))
    return Refusals(request, items) if refused else None


def _count_max(request: Message, items: str) -> int:
    return BOUNDS[f"{request.DESCRIPTOR.full_name}.{items}"].count_max


def is_abort(clause: Ended, request: Message) -> bool:
    """Whether a request ends a transaction by an abort."""
    return clause.may_abort and request.result == TRANSACTION_RESULT_ABORT  # type: ignore[attr-defined]  # the table says so


def leave_out(request: Message, clause: Ended, why_not: WhyNotEnded) -> Message:
    """Return a request without what its caller may not touch; the same one if that is nothing."""
    if all(why_not(clause, ref) is None for ref in refs_at(request, clause.path)):
        return request
    left = type(request)()
    left.CopyFrom(request)
    named = Shown(path=clause.path, keys=((clause.resource, ""),))
    for _ in show(left, named, lambda _, ref: why_not(clause, ref) is None):
        pass
    return left


def show(response: Message, clause: Shown, may_describe: MayDescribe) -> Iterator[None]:
    """Leave out of a response what may not be described, in steps of many entries."""
    for parent, field in parents_at(response, clause.path):
        entries = list(getattr(parent, field))
        kept = []
        for number, entry in enumerate(entries, 1):
            if _may_see(entry, clause, may_describe):
                kept.append(entry)
            if not number % _SHOWN_PER_STEP:
                yield
        if len(kept) < len(entries):
            shown = type(parent)()
            getattr(shown, field).extend(kept)
            parent.ClearField(field)
            parent.MergeFrom(shown)


def _may_see(entry: object, clause: Shown, may_describe: MayDescribe) -> bool:
    return all(
        ref.is_empty or may_describe(resource, ref)
        for resource, key in clause.keys
        for ref in refs_at(entry, key)
    )


def _refuse(answers: Answers, clause: Each, item: object, error: Error) -> None:
    """Add the answers to a refused item."""
    for part in getattr(item, clause.per) if clause.per else (None,):
        result = answers.add()
        _name(result, clause, item)
        if part is not None:
            result.partition = getattr(part, "partition", part)  # type: ignore[attr-defined]  # the table says so
        result.error.CopyFrom(error)  # type: ignore[attr-defined]  # every answer has one
        if "base_offset" in result.DESCRIPTOR.fields_by_name:
            result.base_offset = -1  # type: ignore[attr-defined]  # as of every refused append


def _name(result: Message, clause: Each, item: object) -> None:
    """Let an answer say which item it is for."""
    if clause.into:
        if isinstance(item, Message):
            getattr(result, clause.into).CopyFrom(item)
        else:
            setattr(result, clause.into, item)
        return
    assert isinstance(item, Message), f"{clause.items} are no messages: they need a place"
    answered = result.DESCRIPTOR.fields_by_name
    for name in ("name", "topic", "topic_id", "partition"):
        if name in answered and name in item.DESCRIPTOR.fields_by_name:
            setattr(result, name, getattr(item, name))

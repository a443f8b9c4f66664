"""Operations with their returns: a history's pairs of events, joined."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from semel_checker.history import Event, History, Invoked, Returned
from semel_checker.names import Outcome

Op = TypeVar("Op")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Op, Answer]):
    """One operation. Its indexes are those of its events; realtime order is theirs."""

    op: int
    process: str
    operation: Op
    outcome: Outcome
    result: Answer | None
    invoked: int
    returned: int
    """The end of the history for an operation that never returned."""
    returned_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """All operations, by kind, each kind in order of invocation."""

    by_kind: dict[type, list[Call[Any, Any]]] = field(default_factory=dict)

    def of(self, operation: type[Op], result: type[Answer]) -> list[Call[Op, Answer]]:
        """Return the operations of a kind, with results of the kind that belongs to it."""
        found = self.by_kind.get(operation, [])
        for call in found:
            if call.result is not None and type(call.result) is not result:
                raise ValueError(f"op {call.op} returns a {type(call.result).__name__}")
        return found

    def without_result(self, operation: type[Op]) -> list[Call[Op, None]]:
        """Return the operations of a kind that returns an outcome and no result."""
        return self.by_kind.get(operation, [])


def join_calls(history: History) -> Calls:
    """Join invocations and returns; ValueError for a history that no recorder writes."""
    invoked: dict[int, tuple[int, Event]] = {}
    returned: dict[int, tuple[int, Event]] = {}
    for index, event in enumerate(history):
        if isinstance(event.what, Invoked):
            _add(invoked, index, event)
        elif isinstance(event.what, Returned):
            _add(returned, index, event)
            if event.what.op not in invoked:
                raise ValueError(f"op {event.what.op} returned before it was invoked")
    calls = Calls()
    for op, (index, event) in invoked.items():
        call = _join(op, index, event, returned.get(op), len(history))
        calls.by_kind.setdefault(type(call.operation), []).append(call)
    return calls


def _add(events: dict[int, tuple[int, Event]], index: int, event: Event) -> None:
    assert isinstance(event.what, Invoked | Returned)
    if event.what.op in events:
        raise ValueError(f"op {event.what.op} is there twice")
    events[event.what.op] = (index, event)


def _join(
    op: int, index: int, event: Event, returned: tuple[int, Event] | None, end: int
) -> Call[Any, Any]:
    assert isinstance(event.what, Invoked)
    answer = returned[1].what if returned else None
    assert answer is None or isinstance(answer, Returned)
    return Call(
        op=op,
        process=event.process,
        operation=event.what.operation,
        outcome=answer.outcome if answer else Outcome.UNKNOWN,
        result=answer.result if answer else None,
        invoked=index,
        returned=returned[0] if returned else end,
        returned_ms=returned[1].at_ms if returned else event.at_ms,
    )

"""The history of a run: every operation of every client, every fault, and the final state.

A history is a list of events in the order in which they happened. An operation is two events:
`Invoked`, and `Returned` with the same number. One that never returns (its process died) is as good
as one with the outcome `UNKNOWN`. A recorder must obey these rules:

- It appends `Invoked` before the first byte leaves, and `Returned` after the answer has come: an
  operation takes effect somewhere between the two, and the checks rest on nothing else.
- Nothing but a definite answer is `OK` or `FAILED`. A commit that timed out is `UNKNOWN`.
- Values are unique in the whole history, and no operation is retried under a new number; a commit
  that is asked for again is an operation of its own.
- An operation that is `UNKNOWN` or `FAILED` still carries the result it learned, if it did.
- A transaction is named by its writer, (producer id, producer epoch), as in the protocol. A joint
  transaction is named by `Joint`, and each join's answer gives it one more writer.
- Partitions bear the topic's id, or a name that is used for no second topic.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from semel_checker.names import Outcome
from semel_checker.observations import Observation
from semel_checker.operations import Operation, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoked:
    """An operation begins."""

    op: int
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """An operation is over for its caller."""

    op: int
    outcome: Outcome
    result: Result | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a history."""

    at_ms: int
    """Of the run's own clock; only time-outs and progress are measured with it."""
    process: str
    """The process that saw it: a client, the harness."""
    what: Invoked | Returned | Observation


History = Sequence[Event]


@dataclass(slots=True)
class Recorder:
    """Appends to a history. Time is given, so that a simulation's is its own."""

    now_ms: Callable[[], int]
    events: list[Event] = field(default_factory=list)
    keep: Callable[[Event], None] | None = None
    """Called with each event before anything goes on, for a process that may be killed."""
    ops: int = 0
    """The number of the last operation; processes that record apart begin at different ones."""

    def invoked(self, process: str, operation: Operation) -> int:
        """Append that an operation begins, and return its number."""
        self.ops += 1
        self._append(process, Invoked(op=self.ops, operation=operation))
        return self.ops

    def returned(
        self,
        process: str,
        op: int,
        outcome: Outcome,
        result: Result | None = None,
        *,
        error: str = "",
    ) -> None:
        """Append how an operation came back."""
        self._append(process, Returned(op=op, outcome=outcome, result=result, error=error))

    def observed(self, process: str, observation: Observation) -> None:
        """Append anything else."""
        self._append(process, observation)

    def _append(self, process: str, what: Invoked | Returned | Observation) -> None:
        event = Event(at_ms=self.now_ms(), process=process, what=what)
        self.events.append(event)
        if self.keep is not None:
            self.keep(event)

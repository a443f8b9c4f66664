"""What a state machine and the runner agree on. Pure: machines import this module.

A handler decides, without changing anything, and returns a `Result`. The runner gives its records
journal offsets and hands them to `Machine.replay`, the only method that changes state.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from semel_runtime.journal.contract import StoredBatch

R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)


class Result(Struct, Generic[T_co, R_co], frozen=True):
    """What a handler decided."""

    response: T_co
    """Given to the caller once everything appended so far is durable."""
    records: Sequence[R_co] = ()
    """Facts to append and replay, in this order, all or none."""
    batches: Sequence[StoredBatch] = ()
    """Record batches that ride along; never without a record."""
    verify: bool = False
    """Go through a commit even without records, so that a deposed owner cannot answer."""
    patient: bool = False
    """Let the records share the next commit of another caller; this caller has time."""


class Machine(Protocol[R]):
    """A state that is made of records, and of nothing else."""

    def replay(self, offset: int, record: R) -> None:
        """Apply one record. Never validates, fails, does I/O or reads a clock."""
        ...

    def snapshot(self) -> Iterable[tuple[int, R]]:
        """Return (journal offset, record) pairs whose replay, in order, gives the state of now.

        They are walked through in slices, and the machine goes on between them. So what holds the
        entities is copied at once, which takes some nanoseconds for each; entities are immutable,
        and the walk makes all else, pairs included, as it goes.
        """
        ...


class UnknownRecordError(ValueError):
    """A record is of no kind that this release knows."""


class Serde(Protocol[R]):
    """Maps a machine's records to bytes and back."""

    def encode(self, record: R) -> bytes:
        """Serialize one record."""
        ...

    def decode(self, data: bytes) -> R:
        """Read what `encode` of this or any earlier release wrote.

        Raises UnknownRecordError for a record of a later release.
        """
        ...

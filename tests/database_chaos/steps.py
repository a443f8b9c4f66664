"""The steps of each call with a database, numbered as the process takes them.

A step is a point between two awaits: behind a statement or a call that was answered, or in front of
one that is not sent yet.
"""

from dataclasses import dataclass
from enum import StrEnum

BEGUN = "begun"
WRITTEN = "the handler has written"
SENT = "the broker has what the handler sent"
COMMITTING = "before COMMIT"
COMMITTED = "after COMMIT"


class Call(StrEnum):
    """The calls with a database."""

    STORE = "store"
    TRANSFORM = "transform"
    RELAY = "relay"
    PRODUCER = "producer"


@dataclass(frozen=True, slots=True)
class Step:
    """One step, in front of or behind which the process is killed."""

    call: Call
    number: int
    point: str
    """As ``Killer.passed`` hears of it."""
    at_start: bool
    """Whether the process takes it when it starts, and not for each transaction."""

    @property
    def is_first(self) -> bool:
        """Whether only the first process of an application takes it."""
        return "INSERT semel_position" in self.point

    def __str__(self) -> str:
        return f"{self.call} {self.number}: {self.point}"


def before(what: str) -> str:
    """Return the point in front of a call or a statement."""
    return f"before {what}"


def after(what: str) -> str:
    """Return the point behind the answer of a call, or a statement."""
    return f"after {what}"


_AT_START = {
    Call.STORE: (after("INSERT semel_position"), after("INSERT semel_position, COMMIT")),
    Call.TRANSFORM: (
        after("INSERT semel_producer, COMMIT"),
        after("InitProducerId"),
        after("INSERT semel_position, COMMIT"),
    ),
    Call.RELAY: (after("INSERT semel_outbox_relay"), after("UPDATE semel_outbox_relay, COMMIT")),
    Call.PRODUCER: (after("INSERT semel_producer, COMMIT"), after("InitProducerId")),
}
_EACH_TIME = {
    Call.STORE: (
        BEGUN,
        WRITTEN,
        before("UPDATE semel_position"),
        after("UPDATE semel_position"),
        COMMITTING,
        COMMITTED,
        after("CommitOffsets"),
    ),
    Call.TRANSFORM: (
        BEGUN,
        WRITTEN,
        SENT,
        after("UPDATE semel_position"),
        before("PrepareTxn"),
        after("PrepareTxn"),
        after("INSERT semel_transaction"),
        after("DELETE semel_transaction"),
        COMMITTING,
        COMMITTED,
        before("CompletePreparedTxn"),
        after("CompletePreparedTxn"),
        after("CommitOffsets"),
    ),
    Call.RELAY: (
        WRITTEN,
        after("INSERT semel_outbox"),
        after("INSERT semel_outbox, COMMIT"),
        after("UPDATE semel_outbox_relay"),
        after("UPDATE semel_outbox"),
        after("UPDATE semel_outbox, COMMIT"),
        after("JoinTxn"),
        SENT,
        before("EndJointTxn"),
        after("EndJointTxn"),
        before("DELETE semel_outbox"),
        after("DELETE semel_outbox"),
        after("DELETE semel_outbox, COMMIT"),
    ),
    Call.PRODUCER: (
        BEGUN,
        WRITTEN,
        SENT,
        before("PrepareTxn"),
        after("PrepareTxn"),
        after("INSERT semel_transaction"),
        after("DELETE semel_transaction"),
        COMMITTING,
        COMMITTED,
        before("CompletePreparedTxn"),
        after("CompletePreparedTxn"),
    ),
}


def steps_of(call: Call) -> tuple[Step, ...]:
    """Return the steps of a call, in their order."""
    points = [*((each, True) for each in _AT_START[call]), *((p, False) for p in _EACH_TIME[call])]
    return tuple(
        Step(call, number, point, at_start)
        for number, (point, at_start) in enumerate(points, start=1)
    )

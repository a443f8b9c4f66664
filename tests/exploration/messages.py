"""The messages between clients, coordinator and participants. All are about one producer."""

from dataclasses import dataclass
from typing import TypeAlias

BROKER = "broker"
GROUP = "group"
PARTICIPANTS = (BROKER, GROUP)


@dataclass(frozen=True, slots=True)
class Init:
    """InitProducerId."""

    instance: int


@dataclass(frozen=True, slots=True)
class InitDone:
    """Its answer; without an epoch: a newer instance has taken over."""

    instance: int
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Register:
    """AddPartitionsToTxn or AddOffsetsToTxn; the client does not wait for the answer."""

    epoch: int
    participant: str


@dataclass(frozen=True, slots=True)
class Write:
    """Produce or TxnOffsetCommit: the first of its transaction there."""

    instance: int
    epoch: int
    participant: str


@dataclass(frozen=True, slots=True)
class Written:
    """Its answer."""

    instance: int
    epoch: int
    participant: str
    taken: bool


@dataclass(frozen=True, slots=True)
class End:
    """EndTxn; ``participants`` are the ones that commit, or that the client has sent to."""

    instance: int
    epoch: int
    commit: bool
    participants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """Its answer: the next epoch, if the client may go on, and the outcome, if it is told."""

    instance: int
    epoch: int
    commit: bool
    committed: bool | None
    next_epoch: int | None


@dataclass(frozen=True, slots=True)
class Marker:
    """WriteTxnMarkers, for one participant."""

    epoch: int
    participant: str
    commit: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class MarkerDone:
    """Its answer, if it was not refused."""

    epoch: int
    participant: str


@dataclass(frozen=True, slots=True)
class Ask:
    """InquireTransactions."""

    epoch: int
    participant: str


@dataclass(frozen=True, slots=True)
class Told:
    """Its answer, if it is definite; ``current_epoch`` is set if the epoch was never given out."""

    epoch: int
    participant: str
    commit: bool
    coordinator_epoch: int
    current_epoch: int | None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes at the coordinator: open transactions time out. Never on the network."""


@dataclass(frozen=True, slots=True)
class Complete:
    """The coordinator's own note that all markers of an epoch are written. As above."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The coordinator starts. As above."""


Message: TypeAlias = (
    Init
    | InitDone
    | Register
    | Write
    | Written
    | End
    | Ended
    | Marker
    | MarkerDone
    | Ask
    | Told
    | Tick
    | Complete
    | Claim
)

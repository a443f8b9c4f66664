"""What the coordinator keeps of joint transactions, and writes, as immutable values."""

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from semel_coordinator.transactions.machine.state.transitions import Outcome

NO_VERSION = -1
"""No version is committed, or open."""
ENDS_KEPT = 16
"""How many decisions that owners asked for are remembered, to be answered again."""
SUPERSEDED_RUNS_KEPT = 64
"""How many superseded runs of a transactional id are remembered."""


class JointName(Struct, frozen=True, kw_only=True):
    """One run's attempt at one version."""

    transactional_id: str
    txn_version: int
    owner: str
    run: str


class JointEnd(Struct, frozen=True, kw_only=True):
    """A decision that an owner asked for, and its answer."""

    end_id: str
    """Random, of that request and its repeats."""
    owner: str
    """Who asked: the id may have another one since."""
    run: str
    txn_version: int
    outcome: Outcome
    already_committed: bool = False
    """By another decision."""


class JointId(Struct, frozen=True, kw_only=True):
    """A transactional id of joint transactions. Written when a version begins, and when it ends."""

    transactional_id: str
    owner: str
    run: str
    """The one seen last."""
    superseded: tuple[str, ...] = ()
    """Runs seen before; the latest first."""
    timeout_ms: int = 0
    committed_version: int = NO_VERSION
    """The highest one."""
    open_version: int = NO_VERSION
    start_ms: int = 0
    """When it was opened."""
    last_end: JointEnd | None = None
    """Those before it are in `Joint.ends`."""
    last_update_ms: int
    one_shot: bool = False
    """Its opener says that no other version follows."""
    principal: str = ""
    """Who made the id, for which principal it counts; empty: for none."""

    def of_run(self, run: str) -> "JointId":
        """Return the id after a call of a run: one that is new supersedes the one before."""
        if run == self.run:
            return self
        superseded = (self.run, *self.superseded)[:SUPERSEDED_RUNS_KEPT]
        return replace(self, run=run, superseded=superseded)

    def opened(
        self, txn_version: int, *, timeout_ms: int, one_shot: bool, now_ms: int
    ) -> "JointId":
        """Return the id with a version open."""
        return replace(
            self,
            open_version=txn_version,
            start_ms=now_ms,
            timeout_ms=timeout_ms,
            one_shot=one_shot,
            last_update_ms=now_ms,
        )

    def ended(self, end: JointEnd | None, *, now_ms: int) -> "JointId":
        """Return the id with nothing open, after a decision that was asked for, or another."""
        committed = end is not None and end.outcome is Outcome.COMMITTED
        return replace(
            self,
            open_version=NO_VERSION,
            committed_version=end.txn_version if end and committed else self.committed_version,
            last_end=end or self.last_end,
            last_update_ms=now_ms,
        )


class AbortedWriter(NamedTuple):
    """A writer of an attempt at a version that was aborted; of the run that is in charge."""

    txn_version: int
    writer: str


class JointEndsKept(Struct, frozen=True, kw_only=True):
    """The last decisions that owners asked for, the latest last.

    In snapshots, and after a decision that changes nothing else.
    """

    transactional_id: str
    ends: tuple[JointEnd, ...]
    aborted: tuple[AbortedWriter, ...] = ()
    """The writers that are not to join again, in snapshots; else empty, which changes nothing."""


class JointPoolGrown(Struct, frozen=True, kw_only=True):
    """An id of joint transactions has these producer ids too, for its writers."""

    transactional_id: str
    producer_ids: tuple[int, ...]


class JointPoolShrunk(Struct, frozen=True, kw_only=True):
    """These, the last of an id's pool, were idle for so long that they are forgotten."""

    transactional_id: str
    producer_ids: tuple[int, ...]
    """The last one first. Never given out again: ``ProducerIdsGiven`` stays."""


class JointIdExpired(Struct, frozen=True, kw_only=True):
    """An id was idle for so long that it is forgotten; all of its pool was before."""

    transactional_id: str


class JointWritersJoined(Struct, frozen=True, kw_only=True):
    """These are writers of the open version too, by their names."""

    transactional_id: str
    writers: tuple[str, ...]


class JointKeptAlive(Struct, frozen=True, kw_only=True):
    """When an open version was last kept alive."""

    transactional_id: str
    kept_alive_ms: int


JointRecord = (
    JointId
    | JointEndsKept
    | JointPoolGrown
    | JointPoolShrunk
    | JointIdExpired
    | JointWritersJoined
    | JointKeptAlive
)


class JointEnded(Struct, frozen=True, kw_only=True):
    """What EndJointTxn is answered."""

    outcome: Outcome
    already_committed: bool = False
    """By another decision than the one that was asked for."""
    repeated_in_run: bool = False
    """The run that asks was told so before, of another commit."""


class JointWriter(Struct, frozen=True, kw_only=True):
    """One writer of the open version, for operators."""

    writer: str
    producer_id: int
    producer_epoch: int


class JointDescription(Struct, frozen=True, kw_only=True):
    """An id of joint transactions, for operators."""

    known: JointId
    kept_alive_ms: int
    writers: tuple[JointWriter, ...]
    """In the order in which they joined."""


class TimedOutVersion(Struct, frozen=True, kw_only=True):
    """An open version that a tick has aborted."""

    transactional_id: str
    txn_version: int
    run: str
    writers: int

"""The state of joint transactions: records in, indexes out. Nothing else changes it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import assert_never

from msgspec.structs import replace

from semel_coordinator.transactions.machine.joint.joint_entities import (
    ENDS_KEPT,
    NO_VERSION,
    AbortedWriter,
    JointEnd,
    JointEndsKept,
    JointId,
    JointIdExpired,
    JointKeptAlive,
    JointName,
    JointPoolGrown,
    JointPoolShrunk,
    JointRecord,
    JointWritersJoined,
)


class Joint:
    """One id of joint transactions, with its pool and the writers of the open version."""

    __slots__ = (
        *("_aborted", "_names", "_places", "_pool", "_writers"),
        *("ends", "kept_alive_ms", "known"),
    )

    def __init__(self, known: JointId) -> None:
        """Begin with no producer ids."""
        self.known = known
        self.kept_alive_ms = known.start_ms
        self.ends: tuple[JointEnd, ...] = () if known.last_end is None else (known.last_end,)
        """The last decisions that owners asked for, the latest last."""
        self._pool: list[int] = []
        self._places: dict[int, int] = {}
        """Of each producer id in the pool."""
        self._writers: dict[str, int] = {}
        """Places in the pool by writer, of the open version."""
        self._names: list[str] = []
        """The same writers, by place."""
        self._aborted: dict[AbortedWriter, None] = {}
        """The last ones of this run, the latest last; as many as there are producer ids at most."""

    # -- questions -----------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a version is."""
        return self.known.open_version != NO_VERSION

    @property
    def pool(self) -> Sequence[int]:
        """All producer ids, in the order in which versions use them."""
        return self._pool

    @property
    def writers(self) -> Sequence[str]:
        """The writers of the open version, in the order in which they joined."""
        return list(self._writers)

    @property
    def live(self) -> Sequence[int]:
        """The producer ids of the open version's writers, in the same order."""
        return self._pool[: len(self._writers)]

    def producer_id_of(self, writer: str) -> int | None:
        """Return the producer id of a writer of the open version."""
        place = self._writers.get(writer)
        return None if place is None else self._pool[place]

    def writer_of(self, producer_id: int) -> str | None:
        """Return the writer of the open version that has a producer id of the pool."""
        place = self._places.get(producer_id)
        return None if place is None or place >= len(self._names) else self._names[place]

    def was_aborted(self, name: JointName, writer: str) -> bool:
        """Whether a writer was one of an earlier attempt, so that its join is a late repeat."""
        is_ours = (name.owner, name.run) == (self.known.owner, self.known.run)
        return is_ours and AbortedWriter(name.txn_version, writer) in self._aborted

    def is_live(self, producer_id: int) -> bool:
        """Whether a producer id of the pool belongs to a writer of the open version."""
        return self._places[producer_id] < len(self._writers)

    def time_left_ms(self, now_ms: int) -> int:
        """Return how long the open version has if it is not kept alive once more."""
        age_ms = max(0, now_ms - self.kept_alive_ms)
        return max(0, self.known.timeout_ms - age_ms)

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the open version's time is over; also if the clock went far back."""
        return self.is_open and abs(now_ms - self.kept_alive_ms) >= self.known.timeout_ms

    def with_end(self, end: JointEnd) -> JointEndsKept:
        """Return the record that keeps a decision which changes nothing else."""
        return JointEndsKept(transactional_id=self.known.transactional_id, ends=self._with_end(end))

    def end_of(self, asked: JointEnd) -> JointEnd | None:
        """Return the decision that is asked for once more, if it is kept."""
        return next(
            (end for end in self.ends if replace(end, already_committed=False) == asked), None
        )

    def has_committed(self, asked: JointEnd) -> bool:
        """Whether a run was told, of another commit, that the version of this one is committed."""
        return any(
            replace(end, end_id=asked.end_id, already_committed=False) == asked for end in self.ends
        )

    # -- changes: replay alone calls these -----------------------------------------------------

    def begin(self, known: JointId) -> None:
        """Take the new state; earlier writers are those of a version that is over."""
        if known.last_end is not None and known.last_end != self.known.last_end:
            self.ends = self._with_end(known.last_end)
        self._note_aborted(known)
        self.known = known
        self.kept_alive_ms = known.start_ms
        self._writers.clear()
        self._names.clear()

    def keep(self, kept: JointEndsKept) -> None:
        """Take the last decisions; one of an earlier release names no owner: it is of this one."""
        owner = self.known.owner
        self.ends = tuple(end if end.owner else replace(end, owner=owner) for end in kept.ends)
        if kept.aborted:
            self._aborted = dict.fromkeys(kept.aborted)

    def kept(self) -> JointEndsKept | None:
        """Return the record with the state of finished versions, if there is such a state."""
        if not self.ends and not self._aborted:
            return None
        name = self.known.transactional_id
        return JointEndsKept(transactional_id=name, ends=self.ends, aborted=tuple(self._aborted))

    def grow(self, producer_ids: Iterable[int]) -> None:
        """Take producer ids into the pool."""
        for pool_id in producer_ids:
            self._places[pool_id] = len(self._pool)
            self._pool.append(pool_id)

    def shrink(self, producer_ids: Iterable[int]) -> None:
        """Give up producer ids, from the end of the pool on."""
        for pool_id in producer_ids:
            assert self._pool.pop() == pool_id, f"{pool_id} is not the last one of the pool"
            del self._places[pool_id]
        self._bound_aborted()

    def join(self, writers: Iterable[str]) -> None:
        """Let writers join the open version."""
        for writer in writers:
            self._writers[writer] = len(self._writers)
            self._names.append(writer)

    def _note_aborted(self, after: JointId) -> None:
        """Note the writers of the version that is open, if it ends without being committed.

        Those of an older run, or of another owner, are refused for that, and need not be known.
        """
        if after.run != self.known.run or after.owner != self.known.owner:
            self._aborted.clear()
        elif self.is_open and after.committed_version < self.known.open_version:
            version = self.known.open_version
            for writer in self._writers:
                self._aborted[AbortedWriter(version, writer)] = None
            self._bound_aborted()

    def _bound_aborted(self) -> None:
        surplus = max(0, len(self._aborted) - len(self._pool))
        for version in list(islice(self._aborted, surplus)):
            del self._aborted[version]

    def _with_end(self, end: JointEnd) -> tuple[JointEnd, ...]:
        return (*self.ends, end)[-ENDS_KEPT:]


class Joints:
    """All ids of joint transactions."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.by_id: dict[str, Joint] = {}
        self.open: dict[str, Joint] = {}
        """Those with an open version, by transactional id."""
        self.writer_count = 0
        """Producer ids in all pools."""

    def replay(self, record: JointRecord) -> None:
        """Apply one record."""
        name = record.transactional_id
        match record:
            case JointId():
                self._begin(record)
            case JointEndsKept():
                self.by_id[name].keep(record)
            case JointPoolGrown():
                self.by_id[name].grow(record.producer_ids)
                self.writer_count += len(record.producer_ids)
            case JointPoolShrunk():
                self.by_id[name].shrink(record.producer_ids)
                self.writer_count -= len(record.producer_ids)
            case JointIdExpired():
                self.forget([name])
            case JointWritersJoined():
                self.by_id[name].join(record.writers)
            case JointKeptAlive():
                self.by_id[name].kept_alive_ms = record.kept_alive_ms
            case _:
                assert_never(record)

    def forget(self, names: Iterable[str]) -> None:
        """Know nothing of some ids any more."""
        for name in names:
            self.writer_count -= len(self.by_id.pop(name).pool)
            self.open.pop(name, None)

    def snapshot(self) -> Iterator[JointRecord]:
        """Yield records that make the same state."""
        for name, joint in self.by_id.items():
            yield joint.known
            if (kept := joint.kept()) is not None:
                yield kept
            if joint.pool:
                yield JointPoolGrown(transactional_id=name, producer_ids=tuple(joint.pool))
            if joint.is_open:
                yield JointWritersJoined(transactional_id=name, writers=tuple(joint.writers))
                yield JointKeptAlive(transactional_id=name, kept_alive_ms=joint.kept_alive_ms)

    def _begin(self, record: JointId) -> None:
        joint = self.by_id.get(record.transactional_id)
        if joint is None:
            joint = self.by_id[record.transactional_id] = Joint(record)
        else:
            joint.begin(record)
        if joint.is_open:
            self.open[record.transactional_id] = joint
        else:
            self.open.pop(record.transactional_id, None)

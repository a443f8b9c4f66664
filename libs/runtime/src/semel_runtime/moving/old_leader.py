"""Gives a state that moves away to its new leader, piece by piece."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

import structlog
from msgspec import Struct

from semel_common.ids import InternalTopic
from semel_runtime.machine import Result
from semel_runtime.moving.move_state import MovingState, PartitionMove
from semel_runtime.moving.transfer_pieces import piece_of
from semel_runtime.server.form_checks import INT32_MAX, require_int

log = structlog.get_logger(__name__)

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
T = TypeVar("T")


class Decides(Protocol[R_contra]):
    """What is needed of a runner: see semel_runtime.runner."""

    async def run(
        self, handler: Callable[[], Result[T, R_contra]], *, privileged: bool = False
    ) -> T:
        """Run one handler."""
        ...


class HandOverRequest(Protocol):
    """What the new leader asks for."""

    @property
    def partition(self) -> int:
        """Of the internal topic."""
        ...

    @property
    def leader_epoch(self) -> int:
        """Of the leader that is asked."""
        ...

    @property
    def instance_id(self) -> int:
        """The instance that asks."""
        ...

    @property
    def first_record(self) -> int:
        """Where the piece begins."""
        ...


class Given(Struct, frozen=True, kw_only=True):
    """The answer: a ``Piece``."""

    records: list[bytes]
    record_count: int
    claim_epoch: int


class StateGiver(Generic[R]):
    """Answers what is asked of partitions that move away."""

    def __init__(
        self,
        topic: InternalTopic,
        runner: Decides[R],
        state: MovingState[R],
        encode: Callable[[R], bytes],
        *,
        claim_epoch: int,
    ) -> None:
        """Give the partitions of one internal topic; ``claim_epoch`` is that of the journal."""
        self._topic = topic
        self._runner = runner
        self._state = state
        self._encode = encode
        self._claim_epoch = claim_epoch
        self._giving: tuple[PartitionMove, Sequence[R]] | None = None
        """The records of the partition that is handed over piece by piece."""

    async def hand_over(self, request: HandOverRequest) -> Given:
        """Stop serving a partition, and return a piece of its records."""
        move = PartitionMove(
            partition=require_int("partition", request.partition, maximum=INT32_MAX),
            leader_epoch=require_int("leader_epoch", request.leader_epoch),
            moving_to=require_int("instance_id", request.instance_id, maximum=INT32_MAX),
        )
        first = require_int("first_record", request.first_record, maximum=INT32_MAX)
        # A full disk must not keep anybody from leaving.
        await self._runner.run(partial(self._state.hand_over, move), privileged=True)
        known = self._known_of(move)
        piece = piece_of(known, first, self._encode)
        if first + len(piece) >= len(known):
            self._giving = None
            facts = {"topic": str(self._topic), "partition": move.partition}
            log.info("partition handed over", **facts, to=move.moving_to)
        return Given(records=piece, record_count=len(known), claim_epoch=self._claim_epoch)

    def _known_of(self, move: PartitionMove) -> Sequence[R]:
        """Return the handed-over records: looked up once for all pieces.

        They do not change, because every other request for a handed-over partition is refused.
        """
        if self._giving is None or self._giving[0] != move:
            self._giving = (move, self._state.handed_over(move))
        return self._giving[1]

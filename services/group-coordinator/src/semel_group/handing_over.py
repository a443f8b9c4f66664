"""HandOverGroups: what the old leader of a partition of groups gives to the new one."""

from functools import partial

import structlog

from semel.group.v1 import moves_pb2 as wire
from semel_common.wire.methods import HAND_OVER_GROUPS
from semel_group.machine import GroupMachine
from semel_group.machine.moves import GroupsMove
from semel_group.machine.records import Record
from semel_group.serde import GroupSerde
from semel_runtime.participant.pieces import piece_of
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call, Handlers
from semel_runtime.server.checks import INT32_MAX, require_int

log = structlog.get_logger(__name__)


class GroupsGiver:
    """Answers what is asked of partitions of groups that move away."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, *, claim_epoch: int) -> None:
        """Give groups of one machine; ``claim_epoch`` is that of its journal."""
        self._runner = runner
        self._machine = machine
        self._claim_epoch = claim_epoch
        self._serde = GroupSerde()
        self._giving: tuple[GroupsMove, tuple[Record, ...]] | None = None
        """What is known of the groups that are asked for piece by piece."""

    def register(self, handlers: Handlers) -> None:
        """Add the handler."""
        handlers.add(HAND_OVER_GROUPS, self.hand_over_groups)

    async def hand_over_groups(
        self, request: wire.HandOverGroupsRequest, _call: Call
    ) -> wire.HandOverGroupsResponse:
        """Serve a partition no more, and answer a piece of what is known of its groups."""
        move = GroupsMove(
            partition=require_int("partition", request.partition, maximum=INT32_MAX),
            leader_epoch=require_int("leader_epoch", request.leader_epoch),
            moving_to=require_int("instance_id", request.instance_id, maximum=INT32_MAX),
        )
        first = require_int("first_record", request.first_record, maximum=INT32_MAX)
        # A full disk must not keep anybody from leaving.
        await self._runner.run(partial(self._machine.hand_over_groups, move), privileged=True)
        known = self._known_of(move)
        piece = piece_of(known, first, self._serde.encode)
        if first + len(piece) >= len(known):
            self._giving = None
            log.info("groups handed over", partition=move.partition, to=move.moving_to)
        return wire.HandOverGroupsResponse(
            records=piece,
            record_count=len(known),
            claim_epoch=self._claim_epoch,
        )

    def _known_of(self, move: GroupsMove) -> tuple[Record, ...]:
        """Return what was handed over: looked up once for all pieces, because it does not change.

        This is why it must be so that no other request changes it: see ``GroupMoves.is_served``.
        """
        if self._giving is None or self._giving[0] != move:
            self._giving = (move, self._machine.handed_over(move))
        return self._giving[1]

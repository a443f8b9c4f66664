"""TxnOffsetCommit: offsets of a group that a transaction commits or aborts."""

from dataclasses import dataclass
from functools import partial

from semel.group.v1 import group_pb2 as wire
from semel_group.machine import GroupMachine
from semel_group.machine.records import Record
from semel_group.machine.values import Committer, NewOffset, Transaction
from semel_group.rpc.committers import committer
from semel_group.rpc.new_offsets import new_offsets
from semel_group.rpc.transactions import transaction
from semel_runtime.clock import Clock
from semel_runtime.journal.contract import Reserve
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import INT32_MAX, require_int, require_name


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnCommit:
    """A TxnOffsetCommit request."""

    committer: Committer
    transaction: Transaction
    base_sequence: int
    offsets: list[NewOffset]


class TxnOffsetCommitter:
    """Answers TxnOffsetCommit."""

    def __init__(self, runner: Runner[Record], machine: GroupMachine, clock: Clock) -> None:
        self._runner = runner
        self._machine = machine
        self._clock = clock

    async def txn_offset_commit(
        self, request: wire.TxnOffsetCommitRequest, call: Call
    ) -> wire.TxnOffsetCommitResponse:
        """Hold offsets for a transaction, all or none."""
        del call
        commit = txn_commit(request)
        decide = partial(
            self._machine.committed_offsets.txn_offset_commit,
            commit.committer,
            commit.transaction,
            commit.base_sequence,
            commit.offsets,
            now_ms=self._clock.now_ms(),
        )
        await self._runner.run(decide, may_use=Reserve.HALF)
        return wire.TxnOffsetCommitResponse()


def txn_commit(request: wire.TxnOffsetCommitRequest) -> TxnCommit:
    """Return the offsets that a transaction is to commit."""
    require_name("transactional_id", request.transactional_id)
    return TxnCommit(
        committer=committer(request),
        transaction=transaction(request.producer_id, request.producer_epoch),
        base_sequence=require_int("base_sequence", request.base_sequence, maximum=INT32_MAX),
        offsets=new_offsets(request.topics),
    )

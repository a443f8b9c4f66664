"""Joint transactions as tests drive them: on the machine's harness, with calls in short."""

from collections.abc import Mapping, Sequence

from transactions_harness import TIMEOUT_MS, TransactionsHarness

from semel_common.ids import Participant
from semel_coordinator.transactions.machine import (
    DecidedTransaction,
    EndJointTxn,
    JointDescription,
    JointEnded,
    JointName,
    JoinTxn,
    TimedOutVersion,
    TransactionKey,
    in_order,
)

Wrote = Mapping[TransactionKey, Sequence[Participant]]


def name_of(version: int = 1, *, run: str = "run", owner: str = "owner") -> JointName:
    """A version of the id ``joint``."""
    return JointName(transactional_id="joint", txn_version=version, owner=owner, run=run)


class JointHarness(TransactionsHarness):
    """Runs the handlers of joint transactions of the id ``joint``."""

    def join(
        self,
        writer: str,
        name: JointName | None = None,
        *,
        reset: bool = False,
        one_shot: bool = False,
    ) -> TransactionKey:
        """JoinTxn, of a version that is not committed."""
        key = self.ask_to_join(writer, name, reset=reset, one_shot=one_shot)
        assert key is not None, "already committed"
        return key

    def ask_to_join(
        self,
        writer: str,
        name: JointName | None = None,
        *,
        reset: bool = False,
        one_shot: bool = False,
    ) -> TransactionKey | None:
        """JoinTxn."""
        call = JoinTxn(
            name=name or name_of(),
            writer=writer,
            timeout_ms=TIMEOUT_MS,
            reset=reset,
            one_shot=one_shot,
        )
        return self.run(self.machine.joint.join_txn(call, now_ms=self.now_ms))

    def keep_alive(self, name: JointName | None = None) -> bool:
        """KeepAliveTxn."""
        return self.run(self.machine.joint.keep_alive_txn(name or name_of(), now_ms=self.now_ms))

    def commit_joint(
        self, wrote: Wrote, name: JointName | None = None, *, end_id: str = "end"
    ) -> JointEnded:
        """EndJointTxn(commit)."""
        return self._end_joint(wrote, name, end_id, commit=True)

    def abort_joint(
        self, wrote: Wrote | None = None, name: JointName | None = None, *, end_id: str = "end"
    ) -> JointEnded:
        """EndJointTxn(abort)."""
        return self._end_joint(wrote or {}, name, end_id, commit=False)

    def tick_joint(self, *, after_ms: int = 0) -> tuple[TimedOutVersion, ...]:
        """Let time pass."""
        self.now_ms += after_ms
        return self.run(self.machine.joint.tick(self.now_ms))

    def expire_joint(self, *, after_ms: int = 0) -> tuple[str, ...]:
        """Forget what is idle after some time; the ids of joint transactions that are."""
        self.now_ms += after_ms
        names = self.run(self.machine.expiry.joint_ids())
        return self.run(self.machine.expiry.expire_joint_ids(names, now_ms=self.now_ms))

    def add_to(self, key: TransactionKey, *participants: Participant) -> None:
        """AddPartitionsToTxn of a writer."""
        self.add(key, *participants, transactional_id="joint")

    def described(self) -> JointDescription:
        """What operators see of the id."""
        (found,) = self.run(self.machine.queries.describe_transactions(["joint"]))
        assert found.joint is not None
        return found.joint

    def decided(self) -> dict[TransactionKey, DecidedTransaction]:
        """The transactions that wait for markers."""
        return {marker.key: marker for marker in self.machine.markers.pending()}

    def _end_joint(
        self, wrote: Wrote, name: JointName | None, end_id: str, *, commit: bool
    ) -> JointEnded:
        call = EndJointTxn(
            name=name or name_of(),
            commit=commit,
            writers={key: in_order(those) for key, those in wrote.items()},
            end_id=end_id,
            traceparent="of end",
        )
        return self.run(self.machine.joint.end_joint_txn(call, now_ms=self.now_ms))

"""Joint transactions in any order of calls, time-outs and restarts: a model says what may be.

The model is written from protocol.md, section 3, and knows nothing of pools, epochs or records:
only which runs were seen in which order, which versions are committed, and who joined.
"""

from collections import deque
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from joint_harness import JointHarness, name_of
from transactions_harness import A0, A1, B0, TIMEOUT_MS, state_of

from semel_common.errors import (
    ConcurrentTransactionsError,
    JointOwnerMismatchError,
    ProducerFencedError,
    SemelError,
    TransactionAbortableError,
)
from semel_common.ids import Participant
from semel_coordinator.transactions.machine import (
    InquiryOutcome,
    JointEnded,
    JointName,
    Outcome,
    TransactionKey,
)

names = st.builds(
    name_of,
    st.integers(0, 3),
    run=st.sampled_from(["r1", "r2", "r3"]),
    owner=st.sampled_from(["owner"] * 4 + ["other"]),
)
writers = st.sampled_from("abcd")
participants = st.lists(st.sampled_from([A0, A1, B0]), max_size=2, unique=True)
end_ids = st.sampled_from(["e1", "e2", "e3", "e4"])


@dataclass
class Model:
    """What is true of the id."""

    owner: str = ""
    runs: list[str] = field(default_factory=list)
    """In the order of their first sight."""
    committed: int = -1
    version: int | None = None
    """The one that is open."""
    live: dict[str, TransactionKey] = field(default_factory=dict)
    aborted: set[tuple[JointName, str]] = field(default_factory=set)
    """Writers of attempts that were aborted."""
    aborted_last: set[tuple[JointName, str]] = field(default_factory=set)
    """Those of the last one, while its run is in charge: these are known for sure."""

    def is_mine(self, name: JointName) -> bool:
        """Whether a call names the version that is open, and the run in charge."""
        return (
            self.version == name.txn_version
            and self.owner == name.owner
            and self.runs[-1:] == [name.run]
        )


class JointMachine(RuleBasedStateMachine):
    """Takes steps on the real machine, and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = JointHarness()
        self.model = Model()
        self.given: set[TransactionKey] = set()
        self.committing: dict[TransactionKey, set[Participant]] = {}
        """What was committed of each writer's transaction."""
        self.settled: set[TransactionKey] = set()
        """Transactions of writers of versions that have ended."""
        self.ends: deque[tuple[str, JointName, JointEnded]] = deque(maxlen=16)
        """The last decisions that were asked for, and their answers: these are answered again."""

    @rule(name=names, mine=st.booleans(), writer=writers, reset=st.booleans())
    def join(self, name: JointName, mine: bool, writer: str, reset: bool) -> None:
        """JoinTxn."""
        model = self.model
        name = self._of_run_in_charge(name) if mine and model.runs else name
        try:
            key = self.harness.ask_to_join(writer, name, reset=reset)
        except JointOwnerMismatchError:
            assert name.owner != model.owner
            assert not reset
            return
        except ProducerFencedError:
            assert name.run in model.runs
            assert name.run != model.runs[-1] or name.owner != model.owner
            return
        except ConcurrentTransactionsError:
            assert model.version not in (None, name.txn_version)
            return
        except TransactionAbortableError:
            assert (name, writer) in model.aborted
            assert model.owner == name.owner
            assert model.runs[-1] == name.run
            return
        if key is None:
            assert name.owner == model.owner
            assert name.txn_version <= model.committed
            return
        assert (name, writer) not in model.aborted_last
        if model.is_mine(name):
            assert model.live.get(writer, key) == key
            if writer not in model.live:
                self._give(key)
            model.live[writer] = key
            return
        assert model.owner in ("", name.owner) or reset
        assert name.txn_version > model.committed or model.owner != name.owner
        self._end()
        if model.owner != name.owner:
            model.owner, model.committed = name.owner, -1
        if name.run in model.runs:
            assert model.runs[-1] == name.run
        else:
            model.runs.append(name.run)
            model.aborted_last.clear()
        model.version = name.txn_version
        self._give(key)
        model.live[writer] = key

    @rule(name=names)
    def keep_alive(self, name: JointName) -> None:
        """KeepAliveTxn."""
        model = self.model
        try:
            committed = self.harness.keep_alive(name)
        except JointOwnerMismatchError:
            assert name.owner != model.owner
        except (ProducerFencedError, TransactionAbortableError):
            assert not model.is_mine(name)
        else:
            assert committed == (name.txn_version <= model.committed)
            assert committed or model.is_mine(name)

    @rule(writer=writers, those=participants)
    def register(self, writer: str, those: list[Participant]) -> None:
        """AddPartitionsToTxn."""
        if writer in self.model.live:
            self.harness.add_to(self.model.live[writer], *those)

    @rule(
        name=names,
        mine=st.booleans(),
        chosen=st.dictionaries(writers, participants),
        end_id=end_ids,
        dead=st.none() | st.integers(0, 20),
    )
    def commit(
        self,
        name: JointName,
        mine: bool,
        chosen: dict[str, list[Participant]],
        end_id: str,
        dead: int | None,
    ) -> None:
        """EndJointTxn(commit): of live writers, and perhaps of one that is not."""
        model = self.model
        if mine and model.version is not None:
            name = name_of(model.version, run=model.runs[-1], owner=model.owner)
        wrote = {model.live[each]: those for each, those in chosen.items() if each in model.live}
        gone = sorted(self.settled)
        if dead is not None and dead < len(gone):
            wrote[gone[dead]] = [A0]
        answers = self._answers(end_id, name, Outcome.COMMITTED)
        is_repeat = bool(answers)
        try:
            ended = self.harness.commit_joint(wrote, name, end_id=end_id)
        except SemelError as error:
            assert not is_repeat
            self._refused(name, wrote, error)
            return
        assert ended.outcome is Outcome.COMMITTED
        if is_repeat:
            assert not self.harness.records
            assert ended in answers
            return
        assert name.owner == model.owner or not model.owner
        if ended.already_committed:
            self._already(name, end_id, ended)
            return
        assert name.txn_version > model.committed
        assert set(wrote) <= set(model.live.values())
        if model.is_mine(name):
            self.committing |= {key: set(those) for key, those in wrote.items()}
        else:
            assert not wrote
        self._end(committed=True)
        model.owner = name.owner
        if name.run not in model.runs:
            model.runs.append(name.run)
            model.aborted_last.clear()
        assert model.runs[-1] == name.run
        model.committed = name.txn_version
        self.ends.append((end_id, name, ended))

    def _answers(self, end_id: str, name: JointName, outcome: Outcome) -> list[JointEnded]:
        """Return how a request was answered, if that is kept."""
        return [
            ended
            for each, of, ended in self.ends
            if (each, of, ended.outcome) == (end_id, name, outcome)
        ]

    def _already(self, name: JointName, end_id: str, ended: JointEnded) -> None:
        """Check a commit of a committed version: only the first of a run is kept, and only once."""
        assert name.txn_version <= self.model.committed
        told = any(of == name and e.outcome is Outcome.COMMITTED for _, of, e in self.ends)
        is_last = name.txn_version == self.model.committed
        assert ended.repeated_in_run == (told and is_last)
        assert bool(self.harness.records) == (is_last and not told)
        if self.harness.records:
            self.ends.append((end_id, name, ended))

    def _refused(
        self,
        name: JointName,
        wrote: dict[TransactionKey, list[Participant]],
        error: SemelError,
    ) -> None:
        model = self.model
        match error:
            case JointOwnerMismatchError():
                assert name.owner != model.owner
            case ProducerFencedError():
                assert name.run in model.runs[:-1]
            case ConcurrentTransactionsError():
                assert model.version not in (None, name.txn_version)
            case TransactionAbortableError():
                assert wrote
                assert not model.is_mine(name) or not set(wrote) <= set(model.live.values())
                assert error.details["outcome"] == "ABORTED"
            case _:
                raise error

    @rule(name=names, mine=st.booleans(), end_id=end_ids)
    def abort(self, name: JointName, mine: bool, end_id: str) -> None:
        """EndJointTxn(abort)."""
        model = self.model
        if mine and model.version is not None:
            name = name_of(model.version, run=model.runs[-1], owner=model.owner)
        is_repeat = bool(self._answers(end_id, name, Outcome.ABORTED))
        try:
            ended = self.harness.abort_joint(name=name, end_id=end_id)
        except JointOwnerMismatchError:
            assert name.owner != model.owner
            assert not is_repeat
            return
        except ProducerFencedError:
            assert name.run in model.runs[:-1]
            assert not is_repeat
            return
        if is_repeat:
            assert ended.outcome is Outcome.ABORTED
            assert not self.harness.records
        elif self.harness.records:
            assert model.owner in ("", name.owner)
            is_new = name.run not in model.runs
            if is_new or model.is_mine(name):
                self._end()
            if is_new:
                model.owner = name.owner
                model.runs.append(name.run)
                model.aborted_last.clear()
            self.ends.append((end_id, name, ended))
        else:
            assert ended.outcome is Outcome.COMMITTED
            assert name.txn_version <= model.committed

    @rule(ms=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS]), by_inquiry=st.booleans())
    def wait(self, ms: int, by_inquiry: bool) -> None:
        """Time passes, and a tick or a participant's inquiry notices."""
        self.harness.now_ms += ms
        live = list(self.model.live.values())
        if by_inquiry and live:
            (answer,) = self.harness.inquire((live[-1], A0))
            timed_out = answer.outcome is InquiryOutcome.ABORTED
        else:
            timed_out = bool(self.harness.tick_joint())
        if timed_out:
            self._end()

    @rule(count=st.integers(1, 3))
    def complete(self, count: int) -> None:
        """Some markers arrive."""
        self.harness.complete(*list(self.harness.decided())[:count])

    @rule()
    def restart(self) -> None:
        """The coordinator starts again with its journal; a snapshot would do as well."""
        live = state_of(self.harness.machine)
        restored = self.harness.new_machine()
        for offset, record in self.harness.machine.snapshot():
            restored.replay(offset, record)
        assert state_of(restored) == live
        self.harness.restart()
        assert state_of(self.harness.machine) == live

    def _of_run_in_charge(self, name: JointName) -> JointName:
        return name_of(name.txn_version, run=self.model.runs[-1], owner=self.model.owner)

    def _give(self, key: TransactionKey) -> None:
        assert key not in self.given, "a writer's transaction is its own"
        self.given.add(key)

    def _end(self, *, committed: bool = False) -> None:
        model = self.model
        self.settled |= set(model.live.values())
        if model.version is not None and not committed:
            name = name_of(model.version, run=model.runs[-1], owner=model.owner)
            model.aborted_last = {(name, each) for each in model.live}
            model.aborted |= model.aborted_last
        model.live.clear()
        model.version = None

    @invariant()
    def operators_see_what_is_open(self) -> None:
        """DescribeTransactions."""
        if self.model.runs:
            described = self.harness.described()
            assert [writer.writer for writer in described.writers] == list(self.model.live)
            assert described.known.committed_version == self.model.committed
            open_version = described.known.open_version
            assert open_version == (-1 if self.model.version is None else self.model.version)
            assert open_version == -1 or open_version > described.known.committed_version

    @invariant()
    def participants_are_told_what_was_decided(self) -> None:
        """As long as a marker is missing, the inquiry's answer is the decision; after, ABORTED."""
        decided = self.harness.decided()
        for key in self.settled & decided.keys():
            assert set(decided[key].committing) == self.committing.get(key, set())
        for key in self.settled:
            producer = self.harness.machine._state.producers[key.producer_id]
            outcome = producer.outcome_of(key.producer_epoch)
            assert (outcome is Outcome.COMMITTED) == (key in self.committing)

    def teardown(self) -> None:
        """At the end of every run."""
        self.restart()


JointMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestJointMachine = JointMachine.TestCase

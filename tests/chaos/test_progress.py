"""How long anything stood still, as the report of a run tells it."""

from semel_checker.history import Recorder
from semel_checker.names import Outcome, Partition, Writer
from semel_checker.observations import FaultInjected, FaultKind, FaultsOver
from semel_checker.operations import EndTransaction, Send, SentRecord

from chaos.progress import longest_standstill, pauses_after


class Story:
    """A history that is told in words."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.recorder = Recorder(lambda: self.now_ms)
        self._epoch = 0

    def commit(self, partition: int, *, at_ms: int, outcome: Outcome = Outcome.OK) -> None:
        """Let a transaction of one partition be answered at a time."""
        self._epoch += 1
        writer = Writer(1, self._epoch)
        send = Send(writer=writer, partition=Partition("t", partition), records=(SentRecord("x"),))
        self.recorder.invoked("p", send)
        op = self.recorder.invoked("p", EndTransaction(writer=writer, commit=True))
        self.now_ms = at_ms
        self.recorder.returned("p", op, outcome)

    def kill(self, victim: str, *, at_ms: int) -> None:
        """Record the kill of a victim."""
        self.now_ms = at_ms
        killed = FaultInjected(fault=1, kind=FaultKind.KILL, target=victim, lasting=False)
        self.recorder.observed("chaos", killed)

    def calm(self, *, at_ms: int) -> None:
        """Let the faults be over."""
        self.now_ms = at_ms
        self.recorder.observed("chaos", FaultsOver())


def test_the_longest_pause_of_any_partition_after_the_faults_counts() -> None:
    story = Story()
    story.commit(0, at_ms=10)
    story.commit(1, at_ms=10)
    story.calm(at_ms=1_000)
    story.commit(0, at_ms=1_100)
    story.commit(1, at_ms=1_300)
    story.commit(0, at_ms=1_150)
    assert longest_standstill(story.recorder.events) == 300


def test_what_did_not_commit_is_no_progress() -> None:
    story = Story()
    story.calm(at_ms=1_000)
    story.commit(0, at_ms=1_100, outcome=Outcome.UNKNOWN)
    story.commit(0, at_ms=1_500)
    assert longest_standstill(story.recorder.events) == 500


def test_without_an_end_of_faults_there_is_nothing_to_tell() -> None:
    story = Story()
    story.commit(0, at_ms=10)
    assert longest_standstill(story.recorder.events) == 0


def test_a_pause_after_a_kill_lasts_until_a_commit_that_began_later_succeeds() -> None:
    story = Story()
    story.kill("other", at_ms=50)
    story.commit(0, at_ms=80)
    story.kill("victim", at_ms=100)
    story.commit(0, at_ms=130, outcome=Outcome.FAILED)
    story.kill("victim", at_ms=140)
    story.commit(0, at_ms=300)
    story.commit(0, at_ms=400)
    story.kill("victim", at_ms=500)
    assert list(pauses_after(story.recorder.events, "victim")) == [200]


def test_a_commit_that_was_under_way_at_the_kill_does_not_end_its_pause() -> None:
    story = Story()
    op = story.recorder.invoked("p", EndTransaction(writer=Writer(1, 9), commit=True))
    story.kill("victim", at_ms=100)
    story.now_ms = 110
    story.recorder.returned("p", op, Outcome.OK)
    story.commit(0, at_ms=250)
    assert list(pauses_after(story.recorder.events, "victim")) == [150]

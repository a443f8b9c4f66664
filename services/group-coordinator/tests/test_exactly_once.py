"""Whatever comes late, twice or out of order: a group moves once for each committed transaction.

One producer runs transactions after one another, each of which moves two partitions to the same
offset, by several commits. Its requests, the markers and the answers to inquiries travel over a
network that repeats and delays everything. A seed decides what happens; a failure names it.
"""

from collections.abc import Callable
from random import Random

import pytest
from group_harness import ABORT, COMMIT, GROUP, GroupHarness, rebuilt

from semel_common.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError
from semel_group.machine.values import TransactionResult
from semel_runtime.participant.inquiry import InquiryOutcome

SEEDS = 150
STEPS = 60
UNANSWERED = 0.15
Delivery = Callable[[], bool]
"""Lets a message arrive. Answers whether the group took it."""


class Run:
    """One producer, its coordinator, and the network between them and the group."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.group = GroupHarness()
        self.network: list[Delivery] = []
        self.epoch = 0
        self.sequence = 0
        self.offsets: dict[int, int] = {}
        """What the last commit of each epoch says."""
        self.decided: dict[int, TransactionResult] = {}

    def step(self) -> None:
        """Let one thing happen."""
        (action,) = self.random.choices(
            (self.commit_offsets, self.end, self.late_message, self.restart),
            weights=(10, 6, 20, 1),
        )
        action()

    # -- the producer and its coordinator ---------------------------------------------------------

    def commit_offsets(self) -> None:
        """Commit offsets; each request may arrive at any time, and again.

        Without an answer, the producer sends nothing more in this transaction, and aborts it.
        """
        epoch, sequence, offset = self.epoch, self.sequence, self.random.randrange(1_000_000)

        def arrive() -> bool:
            try:
                self.group.txn_commit({0: offset, 1: offset}, epoch=epoch, sequence=sequence)
            except (InvalidProducerEpochError, OutOfOrderSequenceNumberError):
                return False
            return True

        self.network.append(arrive)
        if self.random.random() < UNANSWERED:
            self.end(ABORT)
            return
        assert arrive()
        self.offsets[epoch] = offset
        self.sequence += 1

    def end(self, result: TransactionResult | None = None) -> None:
        """Decide, and go on with the next epoch; markers and answers follow some time."""
        epoch, result = self.epoch, result or self.random.choice((COMMIT, ABORT))
        self.decided[epoch] = result
        self.network.append(lambda: self.group.marker(result, epoch=epoch) == ())
        outcome = InquiryOutcome.COMMITTED if result is COMMIT else InquiryOutcome.ABORTED
        self.network.append(lambda: self.group.answer(outcome, epoch=epoch))
        self.epoch, self.sequence = epoch + 1, 0

    # -- the network -----------------------------------------------------------------------------

    def late_message(self) -> None:
        """Let any message that was ever sent arrive, once more or for the first time."""
        if self.network:
            self.random.choice(self.network)()

    def restart(self) -> None:
        """Start again from a snapshot."""
        self.group.machine = rebuilt(self.group.machine.snapshot(), self.group.limits)

    def settle(self) -> None:
        """Let every outcome arrive, in any order."""
        if self.sequence:
            self.end()
        self.random.shuffle(self.network)
        for arrive in self.network:
            arrive()

    # -- promises --------------------------------------------------------------------------------

    def nothing_is_torn(self) -> None:
        """What is stable is what some committed transaction said, for both partitions alike."""
        committed = {
            self.offsets.get(epoch) for epoch, result in self.decided.items() if result is COMMIT
        }
        first, second = self.group.fetch(0, 1, stable=True).offsets
        assert first.committed_offset == second.committed_offset
        assert first.committed_offset in committed | {-1}

    def the_last_committed_transaction_counts(self) -> None:
        epochs = [e for e, result in self.decided.items() if result is COMMIT and e in self.offsets]
        expected = self.offsets[max(epochs)] if epochs else -1
        assert self.group.committed(0) == self.group.committed(1) == expected
        assert not self.group.fetch(0, 1, stable=True).unstable
        assert GROUP not in self.group.machine.offsets._pending


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_a_group_moves_once_for_each_committed_transaction(first: int) -> None:
    for seed in range(first, first + 50):
        run = Run(seed)
        try:
            for _ in range(STEPS):
                run.step()
                run.nothing_is_torn()
            run.settle()
            run.the_last_committed_transaction_counts()
        except AssertionError as failure:
            failure.add_note(f"seed {seed}")
            raise

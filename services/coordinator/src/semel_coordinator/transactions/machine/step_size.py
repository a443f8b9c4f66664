"""How much a step that decides on many transactions takes on: what it leaves is for the next one.

A step is one journal append, which has a limit. One decision alone fits into it, because all that
is kept does: see `TransactionLimits.all_participants_bytes_max`. Several together are bounded here.
"""

from semel_coordinator.transactions.machine.state.limits import TransactionLimits


class StepBudget:
    """The rest of one step."""

    def __init__(self, limits: TransactionLimits) -> None:
        """Begin with all of it."""
        self._transactions_left = limits.step_transactions_max
        self._participants_left = limits.step_participants_max
        self._is_used = False

    def takes(self, *, transactions: int, participants: int) -> bool:
        """Take one more decision, unless it is too much beside those before it.

        The first one is taken whatever its size: otherwise no step ever would.
        """
        fits = transactions <= self._transactions_left and participants <= self._participants_left
        if self._is_used and not fits:
            return False
        self._is_used = True
        self._transactions_left -= transactions
        self._participants_left -= participants
        return True

"""Of the ids that each principal has made: the count is that of their records."""

from collections import Counter
from collections.abc import Callable

from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState


def compare_principals(state: TransactionsState, check: Callable[[bool, str], None]) -> None:
    """Count the transactional ids of each principal a second time, and compare."""
    known = [each.principal for each in state.transactional_ids.values()]
    known += [each.known.principal for each in state.joints.by_id.values()]
    counted, counts = Counter(filter(None, known)), state.principals.counts
    check(counted == counts, f"ids of principals are {counted}, not {counts}")

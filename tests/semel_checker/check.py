"""All checks of a history."""

from collections.abc import Callable

from semel_checker.atomicity import check_foreign_ends, check_outcomes, check_torn
from semel_checker.cycles import check_cycles
from semel_checker.facts import Facts, gather
from semel_checker.fencing import check_fences, check_members
from semel_checker.groups import check_balance, check_consumption, check_group_offsets
from semel_checker.history import History
from semel_checker.joints import (
    check_joins,
    check_joint_commits,
    check_joint_owners,
    check_joint_runs,
)
from semel_checker.losses import check_damage, check_losses
from semel_checker.order import check_polls, check_sends
from semel_checker.progress import check_hanging, check_log_offsets, check_progress
from semel_checker.reads import (
    check_aborted_reads,
    check_duplicates,
    check_offsets,
    check_phantoms,
    check_precommitted_reads,
)
from semel_checker.violations import Violation

CHECKS: tuple[Callable[[Facts], list[Violation]], ...] = (
    check_aborted_reads,
    check_precommitted_reads,
    check_offsets,
    check_duplicates,
    check_phantoms,
    check_losses,
    check_damage,
    check_polls,
    check_sends,
    check_cycles,
    check_torn,
    check_outcomes,
    check_foreign_ends,
    check_joint_commits,
    check_joins,
    check_joint_runs,
    check_joint_owners,
    check_group_offsets,
    check_consumption,
    check_balance,
    check_fences,
    check_members,
    check_log_offsets,
    check_hanging,
    check_progress,
)


def check(history: History) -> list[Violation]:
    """Return every broken rule, by rule; ValueError for a history that no recorder writes."""
    facts = gather(history)
    found = [violation for each in CHECKS for violation in each(facts)]
    return sorted(found, key=lambda violation: (int(violation.rule[1:]), violation.ops))

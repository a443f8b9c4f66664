"""Whether there is room for one more transactional id, transaction, or participant."""

from collections.abc import Collection

from semel_common.errors import ThrottlingQuotaExceededError
from semel_common.ids import Participant
from semel_coordinator.transactions.machine.state.entities import size_bytes_of
from semel_coordinator.transactions.machine.state.limits import TransactionLimits
from semel_coordinator.transactions.machine.state.transactions_state import TransactionsState


def no_room(
    state: TransactionsState,
    limits: TransactionLimits,
    *,
    participants: Collection[Participant],
    begins: int,
) -> ThrottlingQuotaExceededError | None:
    """Return what to raise if these participants are too many now; None if there is room.

    `begins`: how many transactions have their first ones among them.
    """
    if begins and state.transaction_count + begins > limits.transactions_max:
        return ThrottlingQuotaExceededError(
            f"this coordinator keeps {limits.transactions_max} transactions already"
        )
    if state.participant_count + len(participants) > limits.all_participants_max:
        return ThrottlingQuotaExceededError(
            f"the transactions of this coordinator have {state.participant_count} participants,"
            f" {len(participants)} more are over {limits.all_participants_max}"
        )
    size_bytes = size_bytes_of(participants)
    if state.participants_bytes + size_bytes > limits.all_participants_bytes_max:
        return ThrottlingQuotaExceededError(
            f"the participants of this coordinator's transactions take {state.participants_bytes}"
            f" bytes, {size_bytes} more are over {limits.all_participants_bytes_max}"
        )
    return None


def check_room_for_id(
    state: TransactionsState, limits: TransactionLimits, transactional_id: str, principal: str
) -> None:
    """Raise ThrottlingQuotaExceededError if one more id is too many, whatever it is used for."""
    state.principals.check_room(principal, limits.transactional_ids_per_principal_max)
    if len(state.transactional_ids) + len(state.joints.by_id) >= limits.transactional_ids_max:
        raise ThrottlingQuotaExceededError(
            f"this coordinator keeps {limits.transactional_ids_max} transactional ids already,"
            f" no room for {transactional_id!r}"
        )

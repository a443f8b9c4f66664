"""How much the transaction coordinator takes."""

from dataclasses import dataclass

from semel_common.wire.messages import request_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLimits:
    """The size of the history of one transaction-log partition.

    Each limit counts for the committed transactions, and once more for the aborted ones: so many
    commits never take the place of a few aborts.
    """

    entries_max: int = 10_000
    """0: none."""
    bytes_max: int = 1024 * 1024
    age_max_ms: int = 86_400_000
    """After the last marker, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """Bounds of the state and of single requests; past one, the request is refused."""

    transaction_max_timeout_ms: int = 900_000
    """The longest time-out that a producer may ask for, in milliseconds."""
    transactional_ids_max: int = 250_000
    """Transactional ids that one coordinator instance keeps, of producers and of joint
    transactions."""
    transactional_ids_per_principal_max: int = 0
    """Transactional ids that one principal may have at one instance; 0: as many as there is room
    for."""
    transactions_max: int = 100_000
    """Transactions that one instance keeps at once: ongoing and prepared ones, and decided ones
    until all their markers are written."""
    incomplete_transactions_max: int = 64
    """Decided transactions of one transactional id that may wait for their markers; past it, a
    commit or PrepareTxn is answered CONCURRENT_TRANSACTIONS. Completions are not refused: prepared
    transactions may come on top.
    """
    prepared_transactions_max: int = 64
    """Transactions of one transactional id that may be prepared and not completed."""
    participants_max: int = request_bounds.PARTICIPANTS_MAX
    """Partitions and groups of one transaction."""
    all_participants_max: int = 1_000_000
    """Partitions and groups of all transactions that one instance keeps at once."""
    all_participants_bytes_max: int = 48 * 1024 * 1024
    """Bytes of all participants, with names. One decision may be about all of them, so this is less
    than `RunnerOptions.decision_bytes_max`: the rest is for the other records of the decision.
    """
    joint_writers_max: int = request_bounds.JOINT_WRITERS_MAX
    """Writers of one joint transaction."""
    all_joint_writers_max: int = 250_000
    """Producer ids that one instance keeps for writers of joint transactions."""
    transactional_id_length_max: int = request_bounds.NAME_LENGTH_MAX
    """Characters of a transactional id."""
    joint_name_length_max: int = request_bounds.NAME_LENGTH_MAX
    """Characters of the owner, the run, the writer or the end id of a joint transaction."""
    instance_id_length_max: int = request_bounds.INSTANCE_ID_LENGTH_MAX
    """Characters of a producer's instance id."""
    topic_id_length_max: int = request_bounds.ID_LENGTH_MAX
    """Characters of a topic id."""
    group_id_length_max: int = request_bounds.NAME_LENGTH_MAX
    """Characters of a group id."""
    inquiries_max: int = request_bounds.INQUIRIES_MAX
    """Inquiries in one request."""
    describe_max: int = request_bounds.TRANSACTIONS_DESCRIBED_MAX
    """Transactional ids in one DescribeTransactions."""
    step_transactions_max: int = 1_000
    """Transactions that one tick, or one inquiry, aborts; the next one does the others."""
    step_participants_max: int = 10_000
    """Participants of those, if they are more than one."""
    transactional_id_expiration_ms: int = 604_800_000
    """How long a transactional id is kept after its last transaction, in milliseconds: 7 days."""
    completion_wait_ms: int = 30_000
    """How long one call waits for markers to be written, in milliseconds; a repeat waits on."""
    history: HistoryLimits = HistoryLimits()
    audit_entries_max: int = 10_000
    """Requests of operators that one instance keeps."""

"""The pages of the API: which public name of aiosemel stands on which page.

mkdocstrings writes the text from the docstrings when the site is built.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import aiosemel
import aiosemel.database
from aiosemel import Admin, Consumer
from aiosemel._producer.sends import RecordSends


class ApiPage(NamedTuple):
    """One page of the reference, and the names on it."""

    title: str
    sentence: str
    names: str


_FOLDER = "docs/reference/api"
_PAGES = {
    "client": ApiPage(
        "The client",
        "A `SemelClient` belongs to one cluster and makes producers, consumers and admin clients.",
        "SemelClient ClientOptions Security TokenSource Clock SystemClock",
    ),
    "producers": ApiPage(
        "Producers",
        "A `Producer` sends records without transactions, each exactly once.",
        "Producer ProducerRecord ProducerOptions Compression Delivery RecordMetadata"
        " ColumnsDelivery ColumnsMetadata EncodedColumn Headers HeaderPairs",
    ),
    "transactions": ApiPage(
        "Transactions",
        "A `TransactionalProducer` writes records and offsets that become visible together.",
        "TransactionalProducer Transaction TransactionPool PoolOptions PreparedTransactionId"
        " TransactionOutcome KnownOutcome Resolution NextStep AbortReason"
        " TransactionOutcomeDescription",
    ),
    "joint-transactions": ApiPage(
        "Joint transactions",
        "A joint transaction has one owner and any number of writers in other processes.",
        "JointTransaction JointWriter JointHandle JointReceipt JointOutcome",
    ),
    "consumers": ApiPage(
        "Consumers",
        "A `Consumer` reads partitions that the program assigns, or shares them within a group.",
        "Consumer ConsumerOptions IsolationLevel OffsetReset ConsumerRecord ColumnBatch"
        " BatchOutcome BatchPlace RebalanceCallback ConsumerGroupMetadata TopicPartition"
        " OffsetAndMetadata OffsetAndTimestamp OffsetSpec LogRange LogRangeReader",
    ),
    "transform": ApiPage(
        "Transform",
        "`SemelClient.transform` reads, transforms and writes records, and commits their offsets,"
        " in one transaction.",
        "Transform TransformOptions Handler Outputs OnEvent OnPoison TransformEvent"
        " TransactionCommitted TransactionAborted RecordPoisoned TransformStats",
    ),
    "database": ApiPage(
        "Your own database",
        "`SemelClient.with_database` returns what commits together with a database of the"
        " application's own; `SemelClient.relay` sends its outbox. [Your own"
        " database](../../use/database.md) shows which call fits which program.",
        "DatabaseClient StoreHandler StoreOnPoison DatabaseHandler DatabaseOnPoison"
        " DatabaseProducer Relay RelayOptions RelayStats AfterRestore database.Outbox"
        " database.create_tables database.tables_sql database.Database database.DatabaseSession"
        " database.Dialect database.Row database.Value database.Cursor",
    ),
    "admin": ApiPage(
        "Admin",
        "An `Admin` creates, describes and changes topics, groups, transactions and access rules.",
        "Admin GroupAdmin AccessAdmin MoveAdmin Operators ConfigValue DeletedRecords Lag"
        " OffsetChange ResetTo ShiftBy ToOffset ToTimestamp AclBinding AclBindingFilter"
        " AclOperation AclPermission PatternType ResourceType ClientQuota AbortedByOperator"
        " FencedByOperator",
    ),
    "descriptions": ApiPage(
        "Descriptions",
        "The values that an `Admin` returns about a cluster, its topics, groups and transactions.",
        "ClusterDescription InstanceDescription ServiceRole DiskShortage TopicDescription"
        " TopicsDescription PartitionDescription PartitionReassignment ConfigDescription"
        " GroupListing GroupDescription GroupState MemberDescription PendingOffsets"
        " TransactionListing TransactionOrder TransactionDescription TransactionState"
        " TransactionalIdDescription"
        " Participants JointDescription JointWriterDescription OpenTransaction OpenTransactions"
        " OpenEpoch PartitionProducers PartitionWrites ProducerDescription TransactionHistory"
        " HistoryFilter EndedTransaction EndedParticipant TransactionClient TransactionOperator"
        " ReaderStanding ReaderCause HoldingTransaction AuditLog AuditEntry",
    ),
    "errors": ApiPage(
        "Error classes",
        "The general classes say what a program does about an error. [Errors](../errors.md) lists"
        " every error with its number.",
        "SemelError RetriableError AbortableTransactionError ApplicationRecoverableError"
        " InvalidRequestError AuthorizationError SaslAuthenticationError BaseOffsetMismatchError"
        " ClosedError IllegalStateError IncompleteListError JointOutcomeUnknownError"
        " JointOwnerMismatchError"
        " NoFreeProducerError NoOffsetForPartitionError ProducerFencedError RequestTimedOutError"
        " TransactionAbortedError TransactionOutcomeUnknownError DatabaseAheadError"
        " DatabaseBehindError DatabaseSessionEndedError DatabaseTablesError"
        " DatabaseUnavailableError",
    ),
}


def api_pages() -> Iterator[tuple[str, str, Iterator[str]]]:
    """Yield the path, the title and the lines of each page."""
    _check_names()
    for name, page in _PAGES.items():
        yield f"{_FOLDER}/{name}.md", page.title, _lines(page)


def _lines(page: ApiPage) -> Iterator[str]:
    yield page.sentence
    for name in page.names.split():
        yield from ("", f"::: aiosemel.{name}")
        if _inherits(attrgetter(name)(aiosemel)):
            yield from ("    options:", "      inherited_members: true")


def _inherits(public: object) -> bool:
    """Return whether calls of a class come from a private base class."""
    return isinstance(public, type) and issubclass(public, RecordSends | Admin | Consumer)


def _check_names() -> None:
    """Check that each public name of aiosemel stands on exactly one page."""
    listed = sorted(name for page in _PAGES.values() for name in page.names.split())
    of_database = (f"database.{name}" for name in aiosemel.database.__all__)
    public = sorted((*aiosemel.__all__, *of_database))
    wrong = sorted(set(listed) ^ set(public)) or [x for x in listed if listed.count(x) > 1]
    assert not wrong, f"tools/api_docs.py must list each public name once: {', '.join(wrong)}"

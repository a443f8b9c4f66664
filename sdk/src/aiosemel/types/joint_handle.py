"""Values that the processes of a joint transaction pass to one another as text."""

from dataclasses import dataclass, field, replace
from typing import TypeVar

from google.protobuf.json_format import MessageToJson, Parse, ParseError
from google.protobuf.message import Message

from aiosemel._producer.sending.request_encoding import participants_message
from aiosemel._shared.value_checks import INT32_MAX, INT64_MAX, check_name, check_number
from aiosemel.errors import InvalidRequestError
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.ids import GroupId, Participant, TopicPartition

_Message = TypeVar("_Message", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointHandle:
    """Names a joint transaction: all that a process needs to join it, or to end it.

    Any process may make it from the same parts. It can be pickled, and passed on as text, to
    clients in other languages too: the text is the message ``JointHandle`` as JSON.
    """

    transactional_id: str
    """Of joint transactions only: no ``transactional_producer`` has it."""
    txn_version: int
    """Rises from one transaction of the id to the next, such as the number of a micro-batch. One
    that is not higher than the last committed one is not written again."""
    owner: str
    """The owner of the versions, for as long as the id is used, such as the id of a query: another
    owner is refused, because its versions would be taken for repeats."""
    run: str
    """One life of the owner, such as the id of a run. One that was never seen fences the last."""
    transaction_timeout_ms: int = 60_000
    """How long the transaction may stay open after it was last kept alive, in milliseconds. Open
    writers keep it alive by themselves."""
    reset: bool = False
    """Take the id over from another owner, and forget which versions that one has committed."""
    one_shot: bool = False
    """The id is for this transaction alone: no program will write another version, or this one
    again. Once it is idle for as long as any id is kept, it is forgotten, though it is committed.
    """
    cluster_id: str = field(default="", compare=False)
    """The cluster of the transaction: a client of another cluster refuses the handle. Empty: any.
    Handles and receipts of a client name its cluster, once the client knows it."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, with InvalidRequestError."""
        for name in ("transactional_id", "owner", "run"):
            check_name(name, getattr(self, name), InvalidRequestError)
        for name, minimum, maximum in (
            ("txn_version", 0, INT64_MAX),
            ("transaction_timeout_ms", 1, INT32_MAX),
        ):
            check_number(name, getattr(self, name), minimum=minimum, maximum=maximum)

    def to_json(self) -> str:
        """Return it as text."""
        return _text(_handle_message(self))

    def in_cluster(self, cluster_id: str) -> "JointHandle":
        """Return the same handle with its cluster, if it names none yet."""
        return self if self.cluster_id else replace(self, cluster_id=cluster_id)

    @property
    def what(self) -> str:
        """The name of the transaction, for errors."""
        return f"version {self.txn_version} of joint transaction {self.transactional_id!r}"

    @classmethod
    def from_json(cls, text: str | bytes) -> "JointHandle":
        """Read what ``to_json`` wrote. Raises InvalidRequestError for anything else."""
        return _handle(_read(text, transactions.JointHandle()))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointReceipt:
    """The receipt that a writer hands back to the owner: its name, and the place of its records.

    The owner commits the writers whose receipts it has; the records of all others abort.
    """

    handle: JointHandle
    already_committed: bool = False
    """The version was committed before: the writer has written nothing, and need not."""
    producer_id: int = 0
    producer_epoch: int = 0
    participants: tuple[Participant, ...] = ()
    """Partitions (by the id of their topic) and groups that have acknowledged all it sent."""

    def to_json(self) -> str:
        """Return it as text."""
        message = transactions.JointReceipt(
            handle=_handle_message(self.handle), already_committed=self.already_committed
        )
        if not self.already_committed:
            message.writer.CopyFrom(writer_message(self))
        return _text(message)

    @classmethod
    def from_json(cls, text: str | bytes) -> "JointReceipt":
        """Read what ``to_json`` wrote. Raises InvalidRequestError for anything else."""
        message = _read(text, transactions.JointReceipt())
        named = message.writer.participants
        partitions = (
            TopicPartition(topic.topic_id, partition)
            for topic in named.topics
            for partition in topic.partitions
        )
        return cls(
            handle=_handle(message.handle),
            already_committed=message.already_committed,
            producer_id=message.writer.producer_id,
            producer_epoch=message.writer.producer_epoch,
            participants=(*partitions, *map(GroupId, named.group_ids)),
        )


def transaction_message(handle: JointHandle) -> transactions.JointTransaction:
    """Return the name of a joint transaction on the wire."""
    return transactions.JointTransaction(
        transactional_id=handle.transactional_id,
        txn_version=handle.txn_version,
        owner=handle.owner,
        run=handle.run,
    )


def writer_message(receipt: JointReceipt) -> transactions.JointWriter:
    """Return who wrote, and where, on the wire."""
    return transactions.JointWriter(
        producer_id=receipt.producer_id,
        producer_epoch=receipt.producer_epoch,
        participants=participants_message(receipt.participants),
    )


def _handle_message(handle: JointHandle) -> transactions.JointHandle:
    return transactions.JointHandle(
        transaction=transaction_message(handle),
        transaction_timeout_ms=handle.transaction_timeout_ms,
        reset=handle.reset,
        one_shot=handle.one_shot,
        cluster_id=handle.cluster_id,
    )


def _handle(message: transactions.JointHandle) -> JointHandle:
    return JointHandle(
        transactional_id=message.transaction.transactional_id,
        txn_version=message.transaction.txn_version,
        owner=message.transaction.owner,
        run=message.transaction.run,
        transaction_timeout_ms=message.transaction_timeout_ms,
        reset=message.reset,
        one_shot=message.one_shot,
        cluster_id=message.cluster_id,
    )


def _text(message: Message) -> str:
    return MessageToJson(message, preserving_proto_field_name=True, indent=None)


def _read(text: str | bytes, message: _Message) -> _Message:
    try:
        return Parse(text, message, ignore_unknown_fields=True)
    except (ParseError, UnicodeDecodeError) as error:
        kind = type(message).__name__
        raise InvalidRequestError(f"not the text of a {kind}: {error}") from error

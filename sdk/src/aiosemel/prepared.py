"""The name of a prepared transaction, to be kept where its fate is decided."""

from dataclasses import dataclass

from aiosemel.errors import InvalidRequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransactionId:
    """A transaction that is prepared, and waits to be committed or aborted.

    Store ``str(prepared)`` in the outside system, in the same transaction as what belongs to it;
    ``PreparedTransactionId.parse`` reads it again, in any process.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.producer_epoch}:{self.transactional_id}"

    @classmethod
    def parse(cls, text: str) -> "PreparedTransactionId":
        """Read what ``str`` wrote; raises InvalidRequestError for anything else."""
        producer_id, _, rest = text.partition(":")
        producer_epoch, _, transactional_id = rest.partition(":")
        if not (producer_id.isdecimal() and producer_epoch.isdecimal() and transactional_id):
            raise InvalidRequestError(f"{text!r} does not name a prepared transaction")
        return cls(
            transactional_id=transactional_id,
            producer_id=int(producer_id),
            producer_epoch=int(producer_epoch),
        )

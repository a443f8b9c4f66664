"""The name of a prepared transaction, to be kept where its fate is decided."""

import re
from dataclasses import dataclass, field

from aiosemel.errors import InvalidRequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransactionId:
    """A transaction that is prepared, and waits to be committed or aborted.

    Store ``str(prepared)`` in the outside system, in the same transaction as what belongs to it;
    ``PreparedTransactionId.parse`` reads it again, in any process. ``qualified`` names the cluster,
    too: then a client of another cluster refuses to complete it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    cluster_id: str = field(default="", compare=False)
    """The cluster of the transaction. Empty: the text that it was read from does not say."""

    def __str__(self) -> str:
        # Systems outside use this text as a key: it stays the same in all releases.
        return f"{self.producer_id}:{self.producer_epoch}:{self.transactional_id}"

    @property
    def qualified(self) -> str:
        """The text with the cluster's id, if that is known."""
        epoch = f"{self.producer_epoch}@{self.cluster_id}" if self.cluster_id else ""
        return f"{self.producer_id}:{epoch or self.producer_epoch}:{self.transactional_id}"

    @classmethod
    def parse(cls, text: str) -> "PreparedTransactionId":
        """Read what ``str`` or ``qualified`` wrote; raises InvalidRequestError."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise InvalidRequestError(f"{text!r} does not name a prepared transaction")
        return cls(
            transactional_id=found["transactional_id"],
            producer_id=int(found["producer_id"]),
            producer_epoch=int(found["producer_epoch"]),
            cluster_id=found["cluster_id"] or "",
        )


_TEXT = re.compile(
    r"(?P<producer_id>[0-9]+):(?P<producer_epoch>[0-9]+)(?:@(?P<cluster_id>[A-Za-z0-9_-]+))?"
    r":(?P<transactional_id>.+)",
    re.DOTALL,
)

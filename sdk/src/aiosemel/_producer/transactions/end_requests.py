"""The requests that end a transaction, as the transaction manager makes them."""

from dataclasses import dataclass

from semel_common.ids import Participant


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxn:
    """The request that ends a transaction."""

    producer_id: int
    producer_epoch: int
    commit: bool
    participants: tuple[Participant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareTxn:
    """The request that prepares a transaction."""

    producer_id: int
    producer_epoch: int
    participants: tuple[Participant, ...]

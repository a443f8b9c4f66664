"""The loop's demands on a transaction that consumes records, wherever the positions are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiosemel._consumer.consumer import Consumer
from aiosemel._transform.failures import HandlerError
from aiosemel._transform.outputs import Outputs
from aiosemel._transform.poison import Input
from aiosemel._transform.types import Made
from aiosemel.types.offsets import OffsetAndMetadata, TopicPartition


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transaction that has begun, as the handler gets it."""

    arguments: tuple[object, ...]
    """What ``handler`` and ``on_poison`` are given behind the records."""
    outputs: Outputs | None
    """None: the transaction has no topics to write to."""
    explain: Callable[[Exception], Exception] = HandlerError
    """Returns the error that an exception of the handler, its cause, stands for."""

    @property
    def records_out(self) -> int:
        """How many records were sent."""
        return 0 if self.outputs is None else self.outputs.count

    async def send_all(self, made: Made) -> None:
        """Send what the handler has returned."""
        if self.outputs is not None:
            await self.outputs.send_all(made or ())
        elif made is not None:
            raise TypeError("the handler returned records, but there is no topic to send them to")

    def close(self) -> None:
        """Take no more from the handler."""
        if self.outputs is not None:
            self.outputs.close()


class InputTransactions(Protocol):
    """The transactions of one loop, one after another."""

    @property
    def producers(self) -> int:
        """How many producers there have been."""
        ...

    @property
    def unknown(self) -> int:
        """How many outcomes of a commit were unknown at first, or never known."""
        ...

    async def start(self) -> None:
        """Settle what an earlier process has left."""
        ...

    async def find_positions(self, partitions: frozenset[TopicPartition]) -> None:
        """Put the consumer where the loop goes on, in partitions that it was given."""
        ...

    async def begin(self) -> OpenTransaction | None:
        """Begin a transaction; None if there is nothing to consume in it any more."""
        ...

    async def commit(self, ends: Mapping[TopicPartition, OffsetAndMetadata], taken: Input) -> None:
        """Commit what the handler did, and the positions behind its input, together.

        Returns when that is definite, and raises when it did not happen, or may not have.
        """
        ...

    async def undo(self, taken: Input, error: Exception) -> None:
        """End the transaction, and put the consumer where it goes on.

        Raises errors that no repetition heals.
        """
        ...

    async def close(self) -> None:
        """End the transaction that is open."""
        ...


def go_back(consumer: Consumer, taken: Input) -> None:
    """Let the consumer read again what it has polled."""
    held = consumer.assignment()
    for topic_partition, start in taken.starts().items():
        if topic_partition in held:
            consumer.seek(topic_partition, start)

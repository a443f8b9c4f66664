"""Consume, transform, produce, exactly once: what an application calls.

The module ``loop`` says how, and why it holds.

At SIGINT (Ctrl-C), SIGTERM or SIGHUP a transformation ends the transaction in hand, or aborts it
after ``signal_grace_ms``, and returns as after ``stop``. So a program that does nothing more ends
with status 0. A second signal does what it would have done without. A transformation leaves alone a
signal that the process ignores or has a handler for, and all of them outside of the main thread.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from random import Random
from typing import Protocol

from opentelemetry.trace import Tracer

from aiosemel._consumer.consumer import Consumer
from aiosemel._producer.transactional_producer import TransactionalProducer
from aiosemel._transform.loop import Transform
from aiosemel._transform.pausing import Pausing
from aiosemel._transform.producer_supply import ProducerSupply
from aiosemel._transform.semel_transactions import SemelTransactions
from aiosemel._transform.types import Handler, OnEvent, OnPoison, TransformOptions
from aiosemel.errors import InvalidConfigError
from aiosemel.options.client_options import ProducerOptions
from aiosemel.options.consumer_options import ConsumerOptions, IsolationLevel, OffsetReset


class TransformClient(Protocol):
    """The part of ``SemelClient`` that ``transform`` uses."""

    def consumer(
        self, group_id: str | None = None, options: ConsumerOptions | None = None
    ) -> Consumer:
        """Make a consumer."""
        ...

    def transactional_producer(
        self, transactional_id: str, options: ProducerOptions | None = None
    ) -> TransactionalProducer:
        """Make a transactional producer."""
        ...


def transform(  # noqa: PLR0913 - all but the client are named
    client: TransformClient,
    *,
    source: Collection[str],
    group: str,
    transactional_id: str,
    handler: Handler,
    on_poison: OnPoison | None = None,
    on_event: OnEvent | None = None,
    options: TransformOptions | None = None,
    consumer_options: ConsumerOptions | None = None,
    producer_options: ProducerOptions | None = None,
    handle_signals: bool = True,
    random: Random | None = None,
    tracer: Tracer | None = None,
) -> Transform:
    """Consume topics as a member of a group, produce what a handler makes of them, exactly once.

    ::

        async def handle(records, outputs):
            for record in records:
                await outputs.send("payments", pay(record.value), key=record.key)

        await client.transform(
            source=["orders"], group="payer", transactional_id="payer-0", handler=handle
        )

    Await the result, or its ``run``: it goes on until ``stop``, a signal (see ``handle_signals``),
    cancellation, or an error that only an operator can repair. Outputs and consumed offsets become
    visible together, once for each record. Other effects of a handler are not part of that; those
    in a database are with ``with_database``.

    The transactional id belongs to one application instance: the same after its restart, so that
    it settles what it had left open, and another one for each instance beside it, such as
    ``payer-0`` and ``payer-1`` of a StatefulSet. The id also names the instance in the group
    (``group_instance_id``): an instance that was killed and starts again has its partitions at
    once, not after the session time-out of 45 s. After that time, or with
    ``take_over_when_fenced``, other instances get them.

    A record on which the handler raises is tried ``handler_retries`` more times, alone; then it is
    for ``on_poison``, or stops the loop. A group starts at the beginning of topics new to it.
    """
    transforming = options or TransformOptions()
    read = transform_consumer_options(consumer_options, transforming, transactional_id)
    consumer = client.consumer(group, read)
    pausing = Pausing(transforming, random or Random())
    make = partial(client.transactional_producer, transactional_id, producer_options)
    return Transform(
        consumer,
        _transactions(consumer, make, transforming, pausing),
        pausing,
        source=source,
        handler=handler,
        on_poison=on_poison,
        on_event=on_event,
        options=transforming,
        handle_signals=handle_signals,
        tracer=tracer,
    )


def _transactions(
    consumer: Consumer,
    make: Callable[[], TransactionalProducer],
    options: TransformOptions,
    pausing: Pausing,
) -> SemelTransactions:
    take_over = options.take_over_when_fenced
    producers = ProducerSupply(make, pausing, take_over_when_fenced=take_over)
    return SemelTransactions(consumer, producers, pausing)


def transform_consumer_options(
    given: ConsumerOptions | None, options: TransformOptions, transactional_id: str
) -> ConsumerOptions:
    """Return how to read: as a static member, unless two instances may fence one another."""
    read = given or ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    check_reads_committed("a transformation", read)
    if not read.group_instance_id and not options.take_over_when_fenced:
        read = replace(read, group_instance_id=transactional_id, leave_group_on_close=True)
    return read


def check_reads_committed(what: str, read: ConsumerOptions) -> None:
    """Refuse options that would see aborted records, or commit offsets beside the transaction.

    Raises InvalidConfigError.
    """
    if read.enable_auto_commit or read.isolation_level != IsolationLevel.READ_COMMITTED:
        raise InvalidConfigError(
            f"{what} reads committed records, and commits offsets in its transactions: "
            f"isolation_level is {read.isolation_level}, enable_auto_commit is "
            f"{read.enable_auto_commit}"
        )


__all__ = [
    "Transform",
    "TransformClient",
    "check_reads_committed",
    "transform",
    "transform_consumer_options",
]

"""Consume, transform, produce, exactly once: what an application calls.

How it is done, and why it holds, stands in ``_transform_loop``.
"""

from collections.abc import Collection
from random import Random
from typing import Protocol

from opentelemetry.trace import Tracer

from aiosemel._transform_loop import Transform
from aiosemel.consumer import Consumer
from aiosemel.consumer_options import ConsumerOptions, IsolationLevel, OffsetReset
from aiosemel.errors import InvalidConfigError
from aiosemel.options import ProducerOptions
from aiosemel.transactional_producer import TransactionalProducer
from aiosemel.transform_types import Handler, OnEvent, OnPoison, TransformOptions


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

    Await what is returned, or its ``run``: it goes on until ``stop``, cancellation, or an error
    that only a person can mend. Outputs and consumed offsets become visible together; a record
    whose outputs are visible is never given to a handler again. What else a handler does is not
    part of that.

    The transactional id belongs to one application instance: the same after its restart, so that
    it settles what it had left open, and another one for each instance that runs beside it (one
    producer for each process, KIP-447). Which partitions an instance reads does not matter: a
    member that has lost its partitions is fenced by its member epoch. So names like ``payer-0`` and
    ``payer-1``, such as those of a StatefulSet, are all it takes.

    A record on which the handler raises is tried ``handler_retries`` more times, alone; then it is
    for ``on_poison``, or without one stops the transformation with the handler's error. A group
    starts at the beginning of topics that are new to it. ``on_event`` is told what happened.
    """
    read = consumer_options or ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    if read.enable_auto_commit or read.isolation_level != IsolationLevel.READ_COMMITTED:
        raise InvalidConfigError(
            "a transformation reads committed records, and commits offsets in its transactions: "
            f"isolation_level is {read.isolation_level}, enable_auto_commit is "
            f"{read.enable_auto_commit}"
        )
    return Transform(
        client.consumer(group, read),
        lambda: client.transactional_producer(transactional_id, producer_options),
        source=source,
        handler=handler,
        on_poison=on_poison,
        on_event=on_event,
        options=options or TransformOptions(),
        random=random,
        tracer=tracer,
    )


__all__ = ["Transform", "TransformClient", "transform"]

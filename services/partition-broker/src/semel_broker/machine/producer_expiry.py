"""Which producers a partition may forget.

See ``semel_runtime.participant.producer_expiry`` for the reasons.
"""

from collections.abc import Callable, Iterable, Iterator

from semel_broker.machine.limits import LogLimits
from semel_broker.machine.partition_log import PartitionLog
from semel_broker.machine.records import ProducerForgotten, ProducerState
from semel_common.ids import TopicPartition
from semel_runtime.participant.producer_expiry import IdleProducer


def idle_producers(
    log: PartitionLog, producer_ids: Iterable[int], *, now_ms: int, limits: LogLimits
) -> list[IdleProducer[TopicPartition]]:
    """Return those of the producers that are idle."""
    states = (log.producers.get(each) for each in producer_ids)
    return [
        IdleProducer(log.partition, state.producer_id, state.fence)
        for state in states
        if state is not None and _is_idle(state, now_ms, limits)
    ]


def forgotten(
    find: Callable[[TopicPartition], PartitionLog | None],
    idle: Iterable[IdleProducer[TopicPartition]],
    *,
    now_ms: int,
    limits: LogLimits,
) -> Iterator[ProducerForgotten]:
    """Yield the facts that make producers forgotten, except producers with new requests."""
    for producer in idle:
        log = find(producer.participant)
        state = None if log is None else log.producers.get(producer.producer_id)
        if state is not None and state.fence == producer.fence and _is_idle(state, now_ms, limits):
            yield ProducerForgotten(log_id=state.log_id, producer_id=state.producer_id)


def _is_idle(state: ProducerState, now_ms: int, limits: LogLimits) -> bool:
    """Never while a transaction is open; nor if the clock went back: its age is not known then."""
    age_ms = now_ms - state.last_timestamp_ms
    return not state.open_epochs and age_ms >= limits.producer_expiration_ms

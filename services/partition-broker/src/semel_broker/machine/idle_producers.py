"""Which producers a partition may forget.

See ``semel_runtime.participant.producer_expiry`` for the reasons.
"""

from collections.abc import Iterator, Sequence

from semel_broker.machine.limits import LogLimits
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.records import ProducerForgotten, ProducerState, Record
from semel_common.ids import TopicPartition
from semel_runtime.machine import Result
from semel_runtime.participant.producer_expiry import IdleProducer


class IdleProducers:
    """Finds idle producers in the partitions that are led here."""

    def __init__(self, logs: LogDirectory, limits: LogLimits) -> None:
        self._logs = logs
        self._limits = limits

    def participants(self) -> Result[Sequence[TopicPartition], Record]:
        """Return all partitions that are led here."""
        return Result([log.partition for log in self._logs.led_here()])

    def producer_ids(self, partition: TopicPartition) -> Result[Sequence[int], Record]:
        """Return the producers that a partition knows."""
        log = self._logs.led_at(partition)
        return Result([] if log is None else list(log.producers))

    def idle_producers(
        self, partition: TopicPartition, producer_ids: Sequence[int], *, now_ms: int
    ) -> Result[list[IdleProducer[TopicPartition]], Record]:
        """Return the idle ones of the producers that a partition knew."""
        log = self._logs.led_at(partition)
        if log is None:
            return Result([])
        states = (log.producers.get(producer_id) for producer_id in producer_ids)
        return Result(
            [
                IdleProducer(partition, state.producer_id, state.fence)
                for state in states
                if state is not None and _is_idle(state, now_ms, self._limits)
            ]
        )

    def forget_producers(
        self, idle: Sequence[IdleProducer[TopicPartition]], *, now_ms: int
    ) -> Result[int, Record]:
        """Forget the producers that are as idle as before. Answers how many."""
        records = list(self._forgotten(idle, now_ms))
        return Result(len(records), records)

    def _forgotten(
        self, idle: Sequence[IdleProducer[TopicPartition]], now_ms: int
    ) -> Iterator[ProducerForgotten]:
        """Yield the facts that make producers forgotten, except producers with new requests."""
        for producer in idle:
            log = self._logs.led_at(producer.participant)
            state = None if log is None else log.producers.get(producer.producer_id)
            is_same = state is not None and state.fence == producer.fence
            if state is not None and is_same and _is_idle(state, now_ms, self._limits):
                yield ProducerForgotten(log_id=state.log_id, producer_id=state.producer_id)


def _is_idle(state: ProducerState, now_ms: int, limits: LogLimits) -> bool:
    """Never while a transaction is open; nor if the clock went back: its age is not known then."""
    age_ms = now_ms - state.last_timestamp_ms
    return not state.open_epochs and age_ms >= limits.producer_expiration_ms

"""Deciding outcomes: markers from coordinators, and the answers to inquiries, which are the same.

Theory of operation (protocol.md, sections 4 and 6). An outcome closes its transaction if it is open
here, and raises the fence in any case, so that nothing late can open it again. What a deposed
coordinator says is refused. All of this is idempotent, so markers are sent until they are
acknowledged.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log.sequence_checks import after_fence, after_marker
from semel_broker.machine.records import (
    MarkerAppended,
    ProducerFenced,
    ProducerState,
)
from semel_broker.machine.values import Outcome
from semel_common.errors import SemelError
from semel_common.ids import TopicPartition
from semel_runtime.participant.coordinator_epochs import (
    CoordinatorEpochCheck,
    CoordinatorEpochSeen,
)

MarkerRecord = CoordinatorEpochSeen | MarkerAppended | ProducerFenced


class Logs(Protocol):
    """Finds the log of a partition."""

    def find_by_id(self, partition: TopicPartition) -> PartitionLog:
        """Return the log; raise why it is not served here."""
        ...


class OutcomeDecisions:
    """Decides outcomes one by one, each on the logs as the ones before would leave them."""

    def __init__(self, logs: Logs, coordinators: CoordinatorEpochCheck, *, now_ms: int) -> None:
        self._logs = logs
        self._coordinators = coordinators
        self._now_ms = now_ms
        self._end_offsets: dict[int, int] = {}
        self._producers: dict[tuple[int, int], ProducerState] = {}
        self._decided: dict[tuple[int, int], MarkerAppended | ProducerFenced] = {}
        self.records: list[MarkerRecord] = []

    def decide_all(self, outcomes: Sequence[Outcome]) -> list[SemelError | None]:
        """Return, for each outcome, why it was refused, or None."""
        return [self._refusal(outcome) for outcome in outcomes]

    def _refusal(self, outcome: Outcome) -> SemelError | None:
        try:
            log = self._logs.find_by_id(outcome.partition)
            seen = self._coordinators.see(outcome.producer_id, outcome.coordinator_epoch)
            self.records.extend(seen)
            self.records.extend(self._decide(log, outcome))
        except SemelError as error:
            return error.as_value()
        return None

    def _decide(self, log: PartitionLog, outcome: Outcome) -> Iterator[MarkerRecord]:
        state = self._producer(log, outcome.producer_id)
        if outcome.producer_epoch in state.open_epochs:
            yield self._append_marker(log, outcome)
        elif outcome.current_epoch is None and state.fence <= outcome.producer_epoch:
            yield self._raise_fence(log, outcome)

    def _append_marker(self, log: PartitionLog, outcome: Outcome) -> MarkerAppended:
        offset = self._end_offsets.get(log.log_id, log.log_end_offset)
        marker = MarkerAppended(
            log_id=log.log_id,
            offset=offset,
            producer_id=outcome.producer_id,
            producer_epoch=outcome.producer_epoch,
            committed=outcome.committed,
            coordinator_epoch=outcome.coordinator_epoch,
            current_epoch=outcome.current_epoch,
            appended_ms=self._now_ms,
        )
        self._end_offsets[log.log_id] = offset + 1
        self._decided[log.log_id, outcome.producer_id] = marker
        return marker

    def _raise_fence(self, log: PartitionLog, outcome: Outcome) -> ProducerFenced:
        fenced = ProducerFenced(
            log_id=log.log_id,
            producer_id=outcome.producer_id,
            fence=outcome.producer_epoch + 1,
            fenced_ms=self._now_ms,
        )
        self._decided[log.log_id, outcome.producer_id] = fenced
        return fenced

    def _producer(self, log: PartitionLog, producer_id: int) -> ProducerState:
        """Return a producer's state, made when it is looked at: mostly no second marker follows."""
        key = (log.log_id, producer_id)
        state = self._producers.get(key) or log.producer(producer_id)
        decided = self._decided.pop(key, None)
        if isinstance(decided, MarkerAppended):
            state = after_marker(state, decided)
        elif decided is not None:
            state = after_fence(state, decided)
        self._producers[key] = state
        return state

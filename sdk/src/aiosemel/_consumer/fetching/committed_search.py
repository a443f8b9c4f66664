"""The search for the committed offsets of a group, where a consumer begins to read."""

import asyncio
from collections.abc import Mapping, Sequence

from aiosemel._cluster.permanent_errors import UNHEALED
from aiosemel._consumer.fetching.held_partitions import Held, HeldPartitions
from aiosemel._consumer.fetching.recovery import AGAIN, Recovery
from aiosemel._consumer.group.committed_offsets import Committed, GroupOffsets, quick_pauses_ms
from aiosemel._consumer.positions import PositionQuestion, Positions
from aiosemel.errors import ApplicationRecoverableError, SemelError
from aiosemel.types.offsets import TopicPartition
from semel.common.v1.records_pb2 import RecordBatch

OFFSETS = "for committed offsets"
"""What failures of this search are noted as."""


class CommittedSearch:
    """Finds committed offsets for one consumer; without a group there are none."""

    def __init__(
        self,
        committed: GroupOffsets | None,
        positions: Positions[RecordBatch],
        holds: HeldPartitions,
        recovery: Recovery,
    ) -> None:
        self._committed = committed
        self._positions = positions
        self._holds = holds
        self._recovery = recovery

    async def find(self, questions: Sequence[PositionQuestion], held: Held) -> None:
        """Ask a few times for offsets that open transactions may still change."""
        waiting = await self._find_stable(questions, held)
        for pause_ms in quick_pauses_ms():
            if not waiting:
                return
            await asyncio.sleep(pause_ms / 1000)
            current = [each for each in waiting if self._positions.is_current(each.ticket)]
            waiting = await self._find_stable(current, held)

    async def _find_stable(
        self, questions: Sequence[PositionQuestion], held: Held
    ) -> list[PositionQuestion]:
        """Ask for committed offsets once; returns the partitions without a definite answer."""
        if self._committed is None:
            for item in questions:
                self._positions.committed(item.ticket, None)
            return []
        partitions = [(item.ticket.topic_partition, item.topic_id) for item in questions]
        try:
            answers = await self._committed.fetch(partitions, self._recovery.deadline())
        except UNHEALED as error:
            self._holds.fail(questions, error)
            return []
        except (*AGAIN, ApplicationRecoverableError) as error:
            self._recovery.failed(OFFSETS, error)
            return list(questions)  # A fenced member asks until it lets go of them.
        except SemelError as error:
            self._holds.fail(questions, error)
            return []
        self._recovery.succeeded(OFFSETS)
        return self._settle(questions, answers, held)

    def _settle(
        self,
        questions: Sequence[PositionQuestion],
        answers: Mapping[TopicPartition, Committed],
        held: Held,
    ) -> list[PositionQuestion]:
        """Take definite answers, and release their partitions; returns the others."""
        waiting = []
        for item in questions:
            answer = answers[item.ticket.topic_partition]
            if isinstance(answer, AGAIN):
                waiting.append(item)
            elif isinstance(answer, SemelError):
                self._positions.failed(item.ticket, answer)
            else:
                self._positions.committed(item.ticket, None if answer is None else answer.offset)
        self._holds.release(held, [item.ticket for item in questions if item not in waiting])
        return waiting

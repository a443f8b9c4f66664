"""Fetch and ListOffsets: between which offsets a partition may be read, and by whom."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from semel_broker.machine.answers import answer_of
from semel_broker.machine.log.partition_log import PartitionLog
from semel_broker.machine.log_directory import LogDirectory
from semel_broker.machine.records import Record
from semel_broker.machine.values import FetchPosition, IsolationLevel, PartitionName, ReadPlan
from semel_common.errors import OffsetOutOfRangeError, SemelError
from semel_runtime.machine import Result


class ReadPlans:
    """Plans the reads of partitions that are led here."""

    def __init__(self, logs: LogDirectory) -> None:
        self._logs = logs

    def fetch(
        self,
        positions: Sequence[FetchPosition],
        isolation: IsolationLevel,
        *,
        with_outcomes: bool = False,
    ) -> Result[list[ReadPlan | SemelError], Record]:
        """Return what may be read of each partition, from its offset on."""
        plans = [answer_of(partial(self._fetch, position, isolation)) for position in positions]
        return Result(self._for_outcomes(plans) if with_outcomes else plans)

    def list_offsets(
        self, names: Sequence[PartitionName], isolation: IsolationLevel
    ) -> Result[list[ReadPlan | SemelError], Record]:
        """Return between which offsets each partition may be read."""
        return Result([answer_of(partial(self._locate, name, isolation)) for name in names])

    def readable_beyond(self, log_id: int, isolation: IsolationLevel, offset: int) -> bool:
        """Whether a reader that waits at ``offset`` has something to read, or to be told."""
        log = self._logs.get(log_id)
        return log is None or not self._logs.is_led(log) or _plan(log, isolation).upto > offset

    def _fetch(self, position: FetchPosition, isolation: IsolationLevel) -> ReadPlan:
        log = self._logs.find(position.name)
        if not log.log_start_offset <= position.fetch_offset <= log.log_end_offset:
            raise OffsetOutOfRangeError(
                f"offset {position.fetch_offset} is not within {log.log_start_offset} to"
                f" {log.log_end_offset}",
                log_start_offset=log.log_start_offset,
                high_watermark=log.log_end_offset,
            )
        return _plan(log, isolation)

    def _for_outcomes(self, plans: Sequence[ReadPlan | SemelError]) -> list[ReadPlan | SemelError]:
        """Add open transactions, one copy for each log, however often a call names it.

        A copy, because a transaction that ends during the read may be missing in the plan's index.
        """
        log_ids = {plan.log_id for plan in plans if isinstance(plan, ReadPlan)}
        now_open = {each: dict(self._logs.log(each).open_transactions) for each in log_ids}
        return [
            replace(plan, open_transactions=now_open[plan.log_id])
            if isinstance(plan, ReadPlan)
            else plan
            for plan in plans
        ]

    def _locate(self, name: PartitionName, isolation: IsolationLevel) -> ReadPlan:
        return _plan(self._logs.find(name), isolation)


def _plan(log: PartitionLog, isolation: IsolationLevel) -> ReadPlan:
    end, stable = log.log_end_offset, log.last_stable_offset
    return ReadPlan(
        place=log.place,
        log_start_offset=log.log_start_offset,
        high_watermark=end,
        last_stable_offset=stable,
        upto=stable if isolation is IsolationLevel.READ_COMMITTED else end,
        sparse_below=end if log.config.cleanup_policy.compacts else log.compacted.upto,
        aborted=log.aborted,
    )

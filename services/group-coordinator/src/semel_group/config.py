"""Settings of the group coordinator."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from semel_group.loops.consumer_lag import LagOptions
from semel_group.machine import GroupLimits
from semel_runtime.config import Count
from semel_runtime.participant.participant_settings import ParticipantSettings


class GroupSettings(ParticipantSettings):
    """What a group coordinator needs to know."""

    group_consumer_session_timeout_ms: Count = 45_000
    """How long a member may be silent before others get its partitions, in milliseconds. A process
    that is killed and starts again waits for it, unless it has a group instance id."""
    group_consumer_heartbeat_interval_ms: Count = 5_000
    """How often members are asked to speak, in milliseconds."""
    group_consumer_reconciling_heartbeat_interval_ms: Count = 500
    """The same, for members that wait for partitions or are to give some up, in milliseconds."""
    group_consumer_max_size: Count = 1_000
    """Members of one group, at most."""
    groups_max: Count = 100_000
    """Groups on this instance, at most: of those with members, and of those with offsets."""
    group_offsets_max: Count = 100_000
    """Partitions in which one group may have a position, at most."""
    group_producers_max: Count = 1_000_000
    """Producer ids that one group remembers; past it, new ones are refused."""
    group_pending_transactions_max: Count = 100_000
    """Transactions that may be open in one group; past it, new ones are refused."""
    offsets_retention_minutes: Count = 10_080
    """How long an offset is kept once no member of its group reads the topic, in minutes."""
    offsets_retention_check_interval_ms: Count = 600_000
    """How often to look for expired offsets, in milliseconds."""
    group_lag_interval_ms: Count = 30_000
    """How often to ask brokers for the lag of groups, for metrics, in milliseconds."""
    offset_metadata_max_bytes: Annotated[int, Field(ge=0, le=1 << 20)] = 4_096
    """Metadata that may be kept with a committed offset, in bytes."""

    @model_validator(mode="after")
    def _check_intervals(self) -> Self:
        interval_ms = self.group_consumer_heartbeat_interval_ms
        if interval_ms >= self.group_consumer_session_timeout_ms:
            raise ValueError(
                f"group_consumer_heartbeat_interval_ms is {interval_ms}, not less than"
                " group_consumer_session_timeout_ms, which is"
                f" {self.group_consumer_session_timeout_ms}"
            )
        return self

    def lag_options(self) -> LagOptions:
        """Return how lags are looked up."""
        return LagOptions(
            interval_ms=self.group_lag_interval_ms,
            request_timeout_ms=self.request_timeout_ms,
            listener=self.inter_broker_listener_name,
        )

    def group_limits(self) -> GroupLimits:
        """Return what groups may hold."""
        return GroupLimits(
            groups_max=self.groups_max,
            group_size_max=self.group_consumer_max_size,
            offsets_max=self.group_offsets_max,
            producers_max=self.group_producers_max,
            pending_transactions_max=self.group_pending_transactions_max,
            offsets_retention_ms=self.offsets_retention_minutes * 60_000,
            offset_metadata_max_bytes=self.offset_metadata_max_bytes,
            producer_expiration_ms=self.producer_id_expiration_ms,
            inquiry=self.inquiry_times(),
        )

"""Settings of the group coordinator."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from semel_group.inquiry import InquiryOptions
from semel_group.machine import GroupLimits
from semel_runtime.cluster.link import LinkOptions
from semel_runtime.config import ServiceSettings

_INT32_MAX = (1 << 31) - 1

Count = Annotated[int, Field(ge=1, le=_INT32_MAX)]


class GroupSettings(ServiceSettings):
    """What a group coordinator needs to know."""

    group_consumer_session_timeout_ms: Count = 45_000
    """How long a member may be silent before others get its partitions, in milliseconds."""
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
    offset_metadata_max_bytes: Annotated[int, Field(ge=0, le=1 << 20)] = 4_096
    """Metadata that may be kept with a committed offset, in bytes."""
    transaction_inquiry_interval_ms: Count = 10_000
    """How long a transaction is open before its coordinator is asked, and between two questions,
    in milliseconds."""
    superseded_inquiry_delay_ms: Count = 100
    """How long a transaction stays open after a newer one of its producer was seen, before its
    coordinator is asked, in milliseconds."""

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

    @model_validator(mode="after")
    def _check_controller(self) -> Self:
        if not self.controller:
            raise ValueError("controller must be set: the address of coordinator 0")
        return self

    def group_limits(self) -> GroupLimits:
        """Return what groups may hold."""
        return GroupLimits(
            groups_max=self.groups_max,
            group_size_max=self.group_consumer_max_size,
            offsets_max=self.group_offsets_max,
            producers_max=self.group_producers_max,
            pending_transactions_max=self.group_pending_transactions_max,
            offset_metadata_max_bytes=self.offset_metadata_max_bytes,
            transaction_inquiry_interval_ms=self.transaction_inquiry_interval_ms,
            superseded_inquiry_delay_ms=self.superseded_inquiry_delay_ms,
        )

    def inquiry_options(self) -> InquiryOptions:
        """Return when coordinators are asked."""
        return InquiryOptions(
            tick_ms=self.superseded_inquiry_delay_ms,
            interval_ms=self.transaction_inquiry_interval_ms,
            request_timeout_ms=self.request_timeout_ms,
            listener=self.inter_broker_listener_name,
        )

    def link_options(self) -> LinkOptions:
        """Return how often the controller is called."""
        return LinkOptions(
            registration_interval_ms=self.registration_interval_ms,
            metadata_max_wait_ms=self.metadata_max_wait_ms,
            request_timeout_ms=self.request_timeout_ms,
        )

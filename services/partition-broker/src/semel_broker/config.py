"""Settings of the partition broker."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from semel_broker.arrivals import ProduceLimits
from semel_broker.fetching import FetchLimits
from semel_broker.inquiry import InquiryOptions
from semel_broker.machine import LogLimits
from semel_runtime.cluster.link import LinkOptions
from semel_runtime.config import ServiceSettings

_INT32_MAX = (1 << 31) - 1

Count = Annotated[int, Field(ge=1, le=_INT32_MAX)]


class BrokerSettings(ServiceSettings):
    """What a partition broker needs to know."""

    message_max_bytes: Annotated[int, Field(ge=1_024, le=16 << 20)] = 1_048_588
    """The largest payload of a record batch, in bytes."""
    batch_records_max: Count = 1 << 20
    """The most records of a record batch."""
    fetch_max_bytes: Annotated[int, Field(ge=1_024, le=32 << 20)] = 16 << 20
    """The most that one Fetch answers, in bytes; a single batch may go over it."""
    fetch_in_progress_max_bytes: Annotated[int, Field(ge=1 << 20)] = 128 << 20
    """The most that all Fetch calls together may have read while they are not answered, in bytes;
    past it, none waits for more, and new ones are refused."""
    partition_producers_max: Count = 1_000_000
    """Producer ids that one partition remembers; past it, new ones are refused."""
    partition_open_transactions_max: Count = 100_000
    """Transactions that may be open in one partition; past it, new ones are refused."""
    transaction_inquiry_interval_ms: Count = 10_000
    """How long a transaction is open before its coordinator is asked, and between two questions,
    in milliseconds."""
    superseded_inquiry_delay_ms: Count = 100
    """How long a transaction stays open after a newer one of its producer was seen, before its
    coordinator is asked, in milliseconds."""

    @model_validator(mode="after")
    def _check_controller(self) -> Self:
        if not self.controller:
            raise ValueError("controller must be set: a broker has to know where coordinator 0 is")
        return self

    def log_limits(self) -> LogLimits:
        """Return what a partition may hold."""
        return LogLimits(
            producers_max=self.partition_producers_max,
            open_transactions_max=self.partition_open_transactions_max,
            transaction_inquiry_interval_ms=self.transaction_inquiry_interval_ms,
            superseded_inquiry_delay_ms=self.superseded_inquiry_delay_ms,
        )

    def produce_limits(self) -> ProduceLimits:
        """Return what a Produce request may hold."""
        return ProduceLimits(
            message_max_bytes=self.message_max_bytes, batch_records_max=self.batch_records_max
        )

    def fetch_limits(self) -> FetchLimits:
        """Return how much a Fetch may read."""
        return FetchLimits(
            fetch_max_bytes=self.fetch_max_bytes,
            in_progress_max_bytes=self.fetch_in_progress_max_bytes,
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

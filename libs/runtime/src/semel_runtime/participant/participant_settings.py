"""Settings that all services share that are participants of transactions."""

from typing import Self

from pydantic import model_validator

from semel_runtime.config import Count, ServiceSettings
from semel_runtime.moving.take_over_loop import TakeOverOptions
from semel_runtime.participant.inquiry import InquiryTimes
from semel_runtime.participant.inquiry_loop import InquiryOptions
from semel_runtime.participant.producer_expiry_loop import ExpiryOptions

_SETTLING_MAX_MS = 600_000
"""Five times as long as a client of the SDK tries to deliver a batch by default."""


class ParticipantSettings(ServiceSettings):
    """What a participant of transactions needs to know."""

    transaction_inquiry_interval_ms: Count = 10_000
    """How long a transaction is open before its coordinator is asked, and between two questions,
    in milliseconds."""
    superseded_inquiry_delay_ms: Count = 250
    """How long a transaction stays open after a newer one of its producer was seen, before its
    coordinator is asked, in milliseconds."""

    producer_id_expiration_ms: Count = 86_400_000
    """How long a producer without an open transaction is remembered after it was last heard of, in
    milliseconds. At least twice the delivery_timeout_ms of producers (120,000): a request that had
    no answer for longer than half of this time cannot be told from one that was lost."""
    producer_id_expiration_check_interval_ms: Count = 600_000
    """How often to look for such producers, in milliseconds."""

    @model_validator(mode="after")
    def _check_controller(self) -> Self:
        if not self.controller:
            raise ValueError("controller must be set: the address of coordinator 0")
        return self

    def inquiry_times(self) -> InquiryTimes:
        """Return when an open transaction is due."""
        return InquiryTimes(
            interval_ms=self.transaction_inquiry_interval_ms,
            superseded_delay_ms=self.superseded_inquiry_delay_ms,
        )

    def inquiry_options(self) -> InquiryOptions:
        """Return how coordinators are asked."""
        return InquiryOptions(
            tick_ms=self.superseded_inquiry_delay_ms,
            interval_ms=self.transaction_inquiry_interval_ms,
            request_timeout_ms=self.request_timeout_ms,
            listener=self.inter_broker_listener_name,
        )

    def expiry_options(self) -> ExpiryOptions:
        """Return how producers are forgotten."""
        return ExpiryOptions(
            interval_ms=self.producer_id_expiration_check_interval_ms,
            settling_ms=min(self.producer_id_expiration_ms, _SETTLING_MAX_MS),
            request_timeout_ms=self.request_timeout_ms,
            listener=self.inter_broker_listener_name,
        )

    def take_over_options(self) -> TakeOverOptions:
        """Return how partitions that move here are taken over."""
        return TakeOverOptions(
            listener=self.inter_broker_listener_name,
            request_timeout_ms=self.request_timeout_ms,
        )

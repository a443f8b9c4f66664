"""InquireTransactions: a participant asks how its open transactions ended."""

from dataclasses import dataclass

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.errors import InconsistentClusterIdError
from semel_common.wire.status import to_value
from semel_coordinator.transactions.machine import (
    FenceAnswer,
    FenceInquiry,
    Inquiry,
    InquiryAnswer,
    InquiryOutcome,
    TransactionKey,
    TransactionLimits,
)
from semel_coordinator.transactions.rpc.participant_messages import participant_from_wire
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_coordinator.transactions.rpc.unknown_epochs import log_never_given
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int

_OUTCOMES = {
    InquiryOutcome.LATER: wire.INQUIRY_OUTCOME_LATER,
    InquiryOutcome.ONGOING: wire.INQUIRY_OUTCOME_ONGOING,
    InquiryOutcome.COMMITTED: wire.INQUIRY_OUTCOME_COMMITTED,
    InquiryOutcome.ABORTED: wire.INQUIRY_OUTCOME_ABORTED,
    InquiryOutcome.NEVER_GIVEN: wire.INQUIRY_OUTCOME_NEVER_GIVEN,
}


@dataclass(frozen=True, slots=True)
class TransactionInquirer:
    """Answers InquireTransactions."""

    parts: ServiceParts

    async def inquire_transactions(
        self, request: wire.InquireTransactionsRequest, _call: Call
    ) -> wire.InquireTransactionsResponse:
        """Tell a participant how transactions ended, and which fences it may forget."""
        parts, machine = self.parts, self.parts.machine
        parts.claim.check()
        if request.cluster_id != parts.cluster.cluster_id:
            raise InconsistentClusterIdError(
                f"this instance belongs to cluster {parts.cluster.cluster_id!r},"
                f" not to {request.cluster_id!r}"
            )
        inquiries = _inquiries(request, parts.limits)
        now_ms = parts.clock.now_ms()
        answers = await parts.runner.run(
            lambda: machine.inquire_transactions(inquiries, now_ms=now_ms)
        )
        response = wire.InquireTransactionsResponse()
        for inquiry, answer in zip(inquiries, answers, strict=True):
            if answer.outcome is InquiryOutcome.NEVER_GIVEN:
                log_never_given(inquiry.key, "InquireTransactions", answer.current_epoch)
            response.answers.append(_answer(answer))
        if request.fences:
            fences = _fence_inquiries(request, parts.limits)
            for found in await parts.runner.run(lambda: machine.expiry.inquire_fences(fences)):
                response.fences.append(_fence_answer(found))
        return response


def _inquiries(
    request: wire.InquireTransactionsRequest, limits: TransactionLimits
) -> list[Inquiry]:
    require_count("inquiries", request.inquiries, maximum=limits.inquiries_max)
    return [
        Inquiry(
            key=TransactionKey(
                require_int(f"inquiries[{index}].producer_id", inquiry.producer_id, minimum=1),
                require_int(f"inquiries[{index}].producer_epoch", inquiry.producer_epoch),
            ),
            participant=participant_from_wire(
                f"inquiries[{index}].participant", inquiry.participant, limits
            ),
        )
        for index, inquiry in enumerate(request.inquiries)
    ]


def _fence_inquiries(
    request: wire.InquireTransactionsRequest, limits: TransactionLimits
) -> list[FenceInquiry]:
    """Read which producers a participant wants to forget."""
    require_count("fences", request.fences, maximum=limits.inquiries_max)
    return [
        FenceInquiry(
            producer_id=require_int(f"fences[{index}].producer_id", fence.producer_id, minimum=1),
            fence=require_int(f"fences[{index}].fence", fence.fence),
            participant=participant_from_wire(
                f"fences[{index}].participant", fence.participant, limits
            ),
        )
        for index, fence in enumerate(request.fences)
    ]


def _answer(answer: InquiryAnswer) -> wire.InquiryAnswer:
    return wire.InquiryAnswer(
        outcome=_OUTCOMES[answer.outcome],
        coordinator_epoch=answer.coordinator_epoch,
        time_left_ms=answer.time_left_ms,
        current_epoch=answer.current_epoch,
        error=None if answer.error is None else to_value(answer.error),
    )


def _fence_answer(answer: FenceAnswer) -> wire.FenceAnswer:
    return wire.FenceAnswer(
        needless=answer.is_needless,
        error=None if answer.error is None else to_value(answer.error),
    )

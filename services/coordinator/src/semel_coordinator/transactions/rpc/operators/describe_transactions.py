"""DescribeTransactions: all that is known of some transactional ids."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from semel.coordinator.v1 import transactions_pb2 as wire
from semel_common.wire.status import to_value
from semel_coordinator.transactions.machine import (
    NO_VERSION,
    JointDescription,
    TransactionalIdDescription,
    TransactionDescription,
    TransactionKey,
    TransactionLimits,
    TransactionState,
)
from semel_coordinator.transactions.machine.state.entities import ParticipantSet
from semel_coordinator.transactions.rpc.operators.state_numbers import TO_WIRE
from semel_coordinator.transactions.rpc.participant_messages import write_participants
from semel_coordinator.transactions.rpc.service_parts import ServiceParts
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_name
from semel_runtime.server.pages import Page, no_room

Missing = Callable[[TransactionKey], ParticipantSet | None]
"""The participants that have not acknowledged a transaction's marker; None if unknown."""


@dataclass(frozen=True, slots=True)
class TransactionDescriber:
    """Answers DescribeTransactions."""

    parts: ServiceParts

    async def describe_transactions(
        self, request: wire.DescribeTransactionsRequest, _call: Call
    ) -> wire.DescribeTransactionsResponse:
        """Describe one transactional id after the other, as many as an answer has room for."""
        parts, page = self.parts, Page(0)
        parts.claim.check()
        response = wire.DescribeTransactionsResponse()
        for name in _names(request, parts.limits):
            describe = partial(parts.machine.queries.describe_transactions, (name,))
            (found,) = await parts.runner.run(describe)
            entry = _description(found, parts.markers.missing)
            if not page.takes(entry):
                refused = no_room(f"transactional id {name!r}")
                entry = wire.TransactionalIdDescription(
                    transactional_id=name, error=to_value(refused)
                )
            response.descriptions.append(entry)
            await asyncio.sleep(0)
        return response


def _names(request: wire.DescribeTransactionsRequest, limits: TransactionLimits) -> list[str]:
    """Read the transactional ids to be described."""
    require_count("transactional_ids", request.transactional_ids, maximum=limits.describe_max)
    return [
        require_name(
            f"transactional_ids[{index}]", name, length_max=limits.transactional_id_length_max
        )
        for index, name in enumerate(request.transactional_ids)
    ]


def _description(
    found: TransactionalIdDescription, missing: Missing
) -> wire.TransactionalIdDescription:
    out = wire.TransactionalIdDescription(transactional_id=found.transactional_id)
    if found.error is not None:
        out.error.CopyFrom(to_value(found.error))
        return out
    out.producer_id = found.producer_id
    out.producer_epoch = found.producer_epoch
    out.transaction_timeout_ms = found.timeout_ms
    if found.client is not None:
        name, address, principal = found.client
        out.client.name, out.client.address, out.client.principal = name, address, principal
    if found.joint is not None:
        _write_joint(found.joint, out.joint)
    for transaction in found.transactions:
        described = out.transactions.add()
        _write_transaction(transaction, missing, described)
        if found.joint is not None:
            described.producer_id = transaction.producer_id
    return out


def _write_joint(joint: JointDescription, out: wire.JointDescription) -> None:
    out.owner = joint.known.owner
    out.run = joint.known.run
    out.committed_version = joint.known.committed_version
    out.open_version = joint.known.open_version
    if joint.known.open_version != NO_VERSION:
        out.start_time_ms = joint.known.start_ms
        out.kept_alive_ms = joint.kept_alive_ms
    for writer in joint.writers:
        out.writers.add(
            writer=writer.writer,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
        )


def _write_transaction(
    transaction: TransactionDescription, missing: Missing, out: wire.TransactionDescription
) -> None:
    out.producer_epoch = transaction.producer_epoch
    out.state = TO_WIRE[transaction.state]
    out.start_time_ms = transaction.start_ms
    write_participants(transaction.participants, out.participants)
    if transaction.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        unacknowledged = missing(transaction.key)
        write_participants(
            transaction.participants if unacknowledged is None else unacknowledged,
            out.missing_markers,
        )
    out.abort_reason = "" if transaction.reason is None else transaction.reason.value
    out.traceparent = transaction.traceparent
    out.prepared_time_ms = transaction.prepared_ms
    out.decided_time_ms = transaction.decided_ms

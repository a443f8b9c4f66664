"""The audit of brokers and group coordinators: the controller keeps their entries.

An instance carries out no audited request before the controller has its entry on disk. If the
controller is away, the request is refused, and may be repeated.
"""

from dataclasses import dataclass

import structlog

from semel.coordinator.v1 import history_pb2 as wire
from semel_common.errors import CoordinatorNotAvailableError, NetworkExceptionError, SemelError
from semel_common.wire.connection import Connector
from semel_common.wire.methods import NOTE_AUDIT
from semel_common.wire.status import IS_UNIMPLEMENTED
from semel_runtime.audit.request_audit import AuditedRequest
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole

log = structlog.get_logger(__name__)

_CONTROLLER_ID = 0
_NOTE_TIMEOUT_MS = 5_000
_END_TIMEOUT_MS = 1_000
"""The caller waits for the answer to its request meanwhile."""


@dataclass(frozen=True, slots=True)
class ControllerTrail:
    """Keeps requests at the controller. Implements ``Trail``."""

    cluster: ClusterCopy
    connector: Connector
    listener: str
    """Name of the coordinators' listener."""

    async def note(self, request: AuditedRequest) -> int | None:
        """Keep a request durably. None: the controller is of a release without this call.

        Raises CoordinatorNotAvailableError.
        """
        message = wire.NoteAuditRequest(
            action=request.action,
            what=request.what,
            principal=request.principal,
            address=request.address,
            operator=request.operator,
            reason=request.reason,
        )
        try:
            answer = await self._ask(message, _NOTE_TIMEOUT_MS)
        except SemelError as error:
            if isinstance(error, NetworkExceptionError) and IS_UNIMPLEMENTED in error.details:
                log.warning(
                    "the controller is older, and keeps no audit of this request",
                    action=request.action,
                    principal=request.principal,
                    what=request.what,
                )
                return None
            raise CoordinatorNotAvailableError(
                f"{request.action} is not carried out: the controller, coordinator"
                f" {_CONTROLLER_ID}, did not note it in the audit: {error.message}"
            ) from error
        return answer.number

    async def end(self, number: int, end: str) -> None:
        """Keep how a request has ended; without an answer, its entry has no end."""
        try:
            await self._ask(wire.NoteAuditRequest(number=number, end=end), _END_TIMEOUT_MS)
        except SemelError as error:
            log.warning(
                "the end of an audited request is not noted",
                number=number,
                end=end,
                error=error.message,
            )

    async def _ask(self, request: wire.NoteAuditRequest, timeout_ms: int) -> wire.NoteAuditResponse:
        address = self.cluster.address(ServiceRole.COORDINATOR, _CONTROLLER_ID, self.listener)
        return await self.connector.connect(address).call(
            NOTE_AUDIT, request, timeout_ms=timeout_ms
        )

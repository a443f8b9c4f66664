"""Notes each request that changes something by hand before its handler carries it out.

Requests of the cluster's own services are left out: the instance that has passed them on has noted
them, and knows whose they are.
"""

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from google.protobuf import text_format
from google.protobuf.message import Message
from msgspec import Struct
from msgspec.structs import replace

from semel.coordinator.v1 import outcomes_pb2
from semel_common.errors import SemelError
from semel_common.wire.messages.request_bounds import OPERATOR_LENGTH_MAX
from semel_runtime.server.calls import Call, Endpoint, Handler
from semel_runtime.server.form_checks import require_name

WHAT_LENGTH_MAX = 1_000
"""Characters of a request that are kept."""
DONE = "DONE"
"""The end of a request that was answered without an error."""

_REHEARSALS = ("dry_run", "validate_only")
"""The fields of rehearsals."""


class AuditedRequest(Struct, frozen=True, kw_only=True):
    """A request, as the audit keeps it."""

    action: str
    """The name of its RPC."""
    what: str
    """The request as text, its beginning."""
    principal: str
    address: str
    """Empty: not known."""
    operator: str
    """In their own words, as the reason is; empty: the request names none."""
    reason: str


class Trail(Protocol):
    """Keeps requests."""

    async def note(self, request: AuditedRequest) -> int | None:
        """Keep a request durably; return its number. None: it is kept nowhere."""
        ...

    async def end(self, number: int, end: str) -> None:
        """Keep how a request has ended: DONE, or the code of an error."""
        ...


@dataclass(frozen=True, slots=True)
class RequestAudit:
    """The audit in front of some handlers."""

    trail: Trail
    actions: Mapping[str, str]
    """The names of the audited RPCs, by path."""
    of_people: Collection[str] = ()
    """The paths of RPCs that programs call as well: only requests with an operator are noted."""

    def audited(self, endpoint: Endpoint[Message, Message]) -> Endpoint[Message, Message]:
        """Return the endpoint with an audit in front of its handler, if its requests need one."""
        action = self.actions.get(endpoint.method.path)
        if action is None:
            return endpoint
        noting = self._noting(action, endpoint.handler)
        if endpoint.method.path in self.of_people:
            noting = partial(_of_people, noting, endpoint.handler)
        return replace(endpoint, handler=noting)

    def _noting(self, action: str, handler: Handler[Message, Message]) -> Handler[Message, Message]:
        async def noted(request: Message, call: Call) -> Message:
            if call.origin.principal.is_cluster or _changes_nothing(request):
                return await handler(request, call)
            number = await self.trail.note(_audited(action, request, call))
            try:
                answer = await handler(request, call)
            except SemelError as error:
                await self._end(number, error.code.name)
                raise
            await self._end(number, DONE)
            return answer

        return noted

    async def _end(self, number: int | None, end: str) -> None:
        if number is not None:
            await self.trail.end(number, end)


def _of_people(
    noting: Handler[Message, Message],
    handler: Handler[Message, Message],
    request: Message,
    call: Call,
) -> Awaitable[Message]:
    """Note a request with an operator, and no other one."""
    return noting(request, call) if request.HasField("operator") else handler(request, call)


def what_is_asked(request: Message) -> str:
    """Return a request as one line of text, its beginning, without its operator."""
    asked = type(request)()
    asked.CopyFrom(request)
    if "operator" in asked.DESCRIPTOR.fields_by_name:
        asked.ClearField("operator")
    text = text_format.MessageToString(asked, as_one_line=True, as_utf8=True)
    return text if len(text) <= WHAT_LENGTH_MAX else f"{text[:WHAT_LENGTH_MAX]}…"


def _audited(action: str, request: Message, call: Call) -> AuditedRequest:
    operator = getattr(request, "operator", outcomes_pb2.Operator())
    for field, text in (("operator.name", operator.name), ("operator.reason", operator.reason)):
        if text:
            require_name(field, text, length_max=OPERATOR_LENGTH_MAX)
    return AuditedRequest(
        action=action,
        what=what_is_asked(request),
        principal=str(call.origin.principal),
        address=call.origin.address,
        operator=operator.name,
        reason=operator.reason,
    )


def _changes_nothing(request: Message) -> bool:
    """Whether a request is a rehearsal, or one of a client about its own transaction or group."""
    if any(getattr(request, field, False) for field in _REHEARSALS):
        return True
    fields = request.DESCRIPTOR.fields_by_name
    if "member_epoch" in fields:
        return not request.HasField("operator")
    return (
        "producer_epoch" in fields
        and "prepared_epoch" in fields
        and request.HasField("producer_epoch")
    )

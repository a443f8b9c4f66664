"""Connections whose answers are checked before anybody has them."""

from google.protobuf.message import Message

from aiosemel._answers import broker, cluster, groups, transactions
from aiosemel._answers.fields import Unfit, at_least, check_page
from aiosemel._answers.registry import AnyCheck
from aiosemel.errors import InvalidResponseError
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.messages.message_pieces import Outgoing, Written
from semel_common.wire.methods import Method, Req, Res

CHECKS: dict[str, AnyCheck] = (
    broker.CHECKS.by_path
    | cluster.CHECKS.by_path
    | groups.CHECKS.by_path
    | transactions.CHECKS.by_path
)
"""The check of each RPC that this client calls, by the path of the RPC."""

_SHOWN_CHARACTERS = 100
_THROTTLE_TIME = "throttle_time_ms"


class CheckedConnection:
    """Calls to one address. Implements ``Connection``."""

    __slots__ = ("_address", "inner")

    def __init__(self, inner: Connection, address: str) -> None:
        self.inner = inner
        self._address = address

    async def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Res:
        """Make one call; see ``Connection.call``. Raises InvalidResponseError as well."""
        answer = await self.inner.call(
            method,
            request,
            timeout_ms=timeout_ms,
            traceparent=traceparent,
            cluster_id=cluster_id,
        )
        # A written request cannot be read again for nothing: its sender knows what it asked for.
        asked = None if isinstance(request, Written) else request
        check_answer(self._address, method, asked, answer)
        return answer


class CheckedConnector:
    """Gives connections that check. Implements ``Connector``."""

    def __init__(self, connector: Connector) -> None:
        """Connect as this one does; it is not closed."""
        self._connector = connector
        self._connections: dict[str, CheckedConnection] = {}

    def connect(self, address: str) -> CheckedConnection:
        """Return the connection to an address."""
        inner = self._connector.connect(address)
        known = self._connections.get(address)
        if known is None or known.inner is not inner:
            known = self._connections[address] = CheckedConnection(inner, address)
        return known

    async def close(self) -> None:
        """Close nothing: the connector is another's."""


def check_answer(address: str, method: Method[Req, Res], request: Req | None, answer: Res) -> None:
    """Raise InvalidResponseError if an answer cannot be believed.

    ``request`` None: only that the numbers of the answer are in their range is known here.
    """
    try:
        at_least(_THROTTLE_TIME, getattr(answer, _THROTTLE_TIME, 0))
        if request is not None:
            check_page(request, answer)
            CHECKS[method.path](request, answer)
    except Unfit as unfit:
        raise unfit_answer(address, method, unfit) from None


def unfit_answer(
    address: str, method: Method[Message, Message], unfit: Unfit
) -> InvalidResponseError:
    """Return the error of an answer with a field that cannot be believed."""
    value = unfit.value if isinstance(unfit.value, str) else repr(unfit.value)
    shown = value[:_SHOWN_CHARACTERS] + ("…" if len(value) > _SHOWN_CHARACTERS else "")
    text = repr(shown) if isinstance(unfit.value, str) else shown
    return InvalidResponseError(
        f"{address} answered {method.name} with {unfit.field} {text}, which {unfit.why}",
        address=address,
        rpc=method.name,
        field=unfit.field,
        value=shown,
    )

"""Calls that name their cluster: a service of another cluster refuses them.

An address proves nothing: a cluster can be replaced by a fresh one at the same addresses, and an
address of one cluster can be given to an instance of another. A frame stream names its cluster when
it is opened: it belongs to one process, and so to one cluster.
"""

from collections.abc import Callable, Coroutine

from semel_common.errors import CoordinatorNotAvailableError, InconsistentClusterIdError
from semel_common.wire.connection import Connection, Connector
from semel_common.wire.messages.message_pieces import Outgoing
from semel_common.wire.methods import Method, Req, Res

CLUSTER_ID = "semel-cluster-id"
"""The key of a call's metadata that has the id of the cluster that the call is for."""

_SHOWN_LENGTH = 64
"""How much of a foreign cluster id is repeated in an error: ids of clusters have 22 characters."""


def check_cluster(named: str, own: str) -> None:
    """Refuse a call for another cluster. Empty: the call names none, or this cluster is unknown.

    Raises InconsistentClusterIdError; CoordinatorNotAvailableError as long as this service does not
    know its cluster.
    """
    if not named or named == own:
        return
    named = named[:_SHOWN_LENGTH]
    if not own:
        raise CoordinatorNotAvailableError(
            f"the call is for cluster {named!r}, and this service does not know its cluster yet:"
            " it has not heard from its controller"
        )
    raise InconsistentClusterIdError(
        f"the call is for cluster {named!r}, but this service belongs to cluster {own!r};"
        " make a new client to use this cluster",
        cluster_id=own,
        named_cluster_id=named,
    )


class ClusterConnector:
    """Connections of another connector, whose calls name a cluster. Implements ``Connector``."""

    def __init__(self, inner: Connector, cluster_id: Callable[[], str]) -> None:
        """Ask ``cluster_id`` at every call; empty as long as the cluster is not known."""
        self._inner = inner
        self._cluster_id = cluster_id

    def connect(self, address: str) -> "ClusterConnection":
        """Return the connection to an address; see ``Connector.connect``."""
        return ClusterConnection(self._inner.connect(address), self._cluster_id)

    async def close(self) -> None:
        """Close every connection."""
        await self._inner.close()


class ClusterConnection:
    """Calls to one address that name a cluster. Implements ``Connection``."""

    __slots__ = ("_cluster_id", "_inner")

    def __init__(self, inner: Connection, cluster_id: Callable[[], str]) -> None:
        self._inner = inner
        self._cluster_id = cluster_id

    def call(
        self,
        method: Method[Req, Res],
        request: Outgoing[Req],
        *,
        timeout_ms: int,
        traceparent: str = "",
        cluster_id: str = "",
    ) -> Coroutine[None, None, Res]:
        """Make one call; see ``Connection.call``. A ``cluster_id`` that is given counts."""
        return self._inner.call(
            method,
            request,
            timeout_ms=timeout_ms,
            traceparent=traceparent,
            cluster_id=cluster_id or self._cluster_id(),
        )

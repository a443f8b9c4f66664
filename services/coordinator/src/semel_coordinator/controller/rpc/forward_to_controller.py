"""Changes of the metadata at all coordinators but the controller: they pass them on to it."""

from functools import partial

from google.protobuf.message import Message

from semel_common.wire import methods
from semel_common.wire.connection import Connector
from semel_common.wire.methods import Method
from semel_coordinator.controller import CONTROLLER_ID
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole
from semel_runtime.server.calls import Call, Handlers

_CHANGING: tuple[Method[Message, Message], ...] = (
    methods.CREATE_TOPICS,
    methods.DELETE_TOPICS,
    methods.CREATE_PARTITIONS,
    methods.INCREMENTAL_ALTER_CONFIGS,
    methods.CREATE_ACLS,
    methods.DELETE_ACLS,
    methods.ALTER_CLIENT_QUOTAS,
    methods.ALTER_PARTITION_REASSIGNMENTS,
    methods.REBALANCE_PARTITIONS,
    methods.DECOMMISSION_INSTANCE,
    methods.COMPLETE_PARTITION_REASSIGNMENT,
    methods.REGISTER_INSTANCE,
)
CHANGING_PATHS = frozenset(each.path for each in _CHANGING) - {methods.REGISTER_INSTANCE.path}
"""The paths of the calls that change the metadata, registrations excepted."""


class PassedOnChanges:
    """Passes changes on as they are.

    The controller is called where it has registered, not where the settings say: two instances
    whose settings name one another would pass a call to and fro.
    """

    def __init__(
        self, cluster: ClusterCopy, connector: Connector, *, listener: str, timeout_ms: int
    ) -> None:
        """Reach the controller on this listener; wait for it at most ``timeout_ms``."""
        self._cluster = cluster
        self._connector = connector
        self._listener = listener
        self._timeout_ms = timeout_ms

    def register(self, handlers: Handlers) -> None:
        """Register a handler for each call that changes the metadata."""
        for method in _CHANGING:
            handlers.add(method, partial(self._pass_on, method))

    async def _pass_on(
        self, method: Method[Message, Message], request: Message, call: Call
    ) -> Message:
        address = self._cluster.address(ServiceRole.COORDINATOR, CONTROLLER_ID, self._listener)
        timeout_ms = min(self._timeout_ms, call.remaining_ms(self._timeout_ms))
        connection = self._connector.connect(address)
        return await connection.call(method, request, timeout_ms=timeout_ms)

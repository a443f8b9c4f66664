"""Topics as the controller knows them now: what a copy of the metadata may not know yet.

A copy may be old. So it proves neither that a topic does not exist, nor that a name still belongs
to the topic that a client has written to. The controller's answer proves both.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import (
    SemelError,
    TopicNotFoundError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from semel_common.wire.connection import Connector
from semel_common.wire.methods import METADATA
from semel_coordinator.controller import CONTROLLER_ID
from semel_coordinator.controller.machine.topic_names import check_topic_name
from semel_coordinator.controller.rpc.metadata_messages import missing_topic, topic_to_wire
from semel_coordinator.coordinator_machine import CoordinatorRecord
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.cluster.metadata_image import ServiceRole, Topic
from semel_runtime.machine import Result
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call


class TopicsNow(Protocol):
    """Finds topics as the controller knows them."""

    async def find(
        self, names: Sequence[str], topic_ids: Sequence[str], call: Call
    ) -> list[wire.Topic]:
        """Return a topic for each name, then for each id: the topic, or the error in its place.

        Raises a RetriableError while the controller does not answer.
        """
        ...


class OwnTopics:
    """The controller's own topics. Implements ``TopicsNow``."""

    def __init__(
        self,
        runner: Runner[CoordinatorRecord],
        cluster: ClusterCopy,
        check_confirmed: Callable[[], None],
    ) -> None:
        """Find topics in the copy, which shows what the controller has decided."""
        self._runner = runner
        self._cluster = cluster
        self._check_confirmed = check_confirmed

    async def find(
        self, names: Sequence[str], topic_ids: Sequence[str], _call: Call
    ) -> list[wire.Topic]:
        """See ``TopicsNow.find``."""
        self._check_confirmed()
        return await self._runner.run(
            lambda: Result(
                [
                    *(_named(self._cluster, name) for name in names),
                    *(_identified(self._cluster, topic_id) for topic_id in topic_ids),
                ]
            )
        )


class PassedOnTopics:
    """The topics of a controller elsewhere. Implements ``TopicsNow``."""

    def __init__(
        self, cluster: ClusterCopy, connector: Connector, *, listener: str, timeout_ms: int
    ) -> None:
        """Reach the controller on this listener; wait for it at most ``timeout_ms``."""
        self._cluster = cluster
        self._connector = connector
        self._listener = listener
        self._timeout_ms = timeout_ms

    async def find(
        self, names: Sequence[str], topic_ids: Sequence[str], call: Call
    ) -> list[wire.Topic]:
        """See ``TopicsNow.find``."""
        address = self._cluster.address(ServiceRole.COORDINATOR, CONTROLLER_ID, self._listener)
        response = await self._connector.connect(address).call(
            METADATA,
            wire.MetadataRequest(topics=names, topic_ids=topic_ids, from_controller=True),
            timeout_ms=min(self._timeout_ms, call.remaining_ms(self._timeout_ms)),
        )
        return list(response.topics)


def _named(cluster: ClusterCopy, name: str) -> wire.Topic:
    def find() -> Topic:
        check_topic_name(name)
        return cluster.topic_by_name(name)

    return _found(find, name=name)


def _identified(cluster: ClusterCopy, topic_id: str) -> wire.Topic:
    return _found(lambda: cluster.topic_by_id(topic_id), topic_id=topic_id)


def _found(find: Callable[[], Topic], *, name: str = "", topic_id: str = "") -> wire.Topic:
    try:
        return topic_to_wire(find())
    except (UnknownTopicOrPartitionError, UnknownTopicIdError) as error:
        missing = TopicNotFoundError(error.message)
        return missing_topic(missing, name=name, topic_id=topic_id)
    except SemelError as error:
        return missing_topic(error, name=name, topic_id=topic_id)

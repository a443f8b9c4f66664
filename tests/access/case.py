"""One request of the tests, and the names of the resources in the test cluster."""

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.message import Message

from aiosemel import AclOperation, ResourceType
from semel_common.wire.methods import Method

TOPIC, OTHER_TOPIC, GROUP, TXN = "orders", "secret", "readers", "writer-1"
"""The resources of the test cluster. No caller may learn of the other topic."""


class Rule(NamedTuple):
    """A permission on a resource."""

    resource_type: ResourceType
    name: str
    operation: AclOperation


class Case(NamedTuple):
    """One request, and what its caller needs."""

    name: str
    method: Method[Message, Message]
    address: str
    request: Callable[[str], Message]
    """Made with the id of the topic."""
    rules: tuple[Rule, ...]
    """The caller needs all of them. None: only the cluster\'s own services may send the request."""
    shows: Callable[[Message], bool] | None = None
    """Whether an answer shows hidden data to its caller; None: the service refuses the caller."""


def on_topic(operation: AclOperation) -> Rule:
    return Rule(ResourceType.TOPIC, TOPIC, operation)


def on_cluster(operation: AclOperation) -> Rule:
    return Rule(ResourceType.CLUSTER, "cluster", operation)


Op = AclOperation
READ_GROUP = Rule(ResourceType.GROUP, GROUP, Op.READ)
SEE_GROUP = Rule(ResourceType.GROUP, GROUP, Op.DESCRIBE)
WRITE_TXN = Rule(ResourceType.TRANSACTIONAL_ID, TXN, Op.WRITE)
SEE_TXN = Rule(ResourceType.TRANSACTIONAL_ID, TXN, Op.DESCRIBE)
KEY: dict[str, Any] = {"transactional_id": TXN, "producer_id": 1, "producer_epoch": 1}


def case_of(
    method: object,
    address: str,
    request: Message | Callable[[str], Message],
    *rules: Rule,
    name: str = "",
    shows: Callable[[Message], bool] | None = None,
) -> Case:
    assert isinstance(method, Method)
    make = request if callable(request) else lambda _id: request
    return Case(f"{method.name}{name}", method, address, make, rules, shows)

"""Access rules as plain values, with Kafka's words and numbers. Pure.

Kafka's rules name hosts too; here every rule counts for all of them: an address proves nothing.
"""

from enum import IntEnum

from msgspec import Struct

from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import NAME_LENGTH_MAX

ANY = 0
"""In a filter: any number. Texts are any when they are empty."""
WILDCARD = "*"
"""As a whole literal name: every name."""
CLUSTER_NAME = "cluster"
"""The only name of a resource of the type CLUSTER."""
USER = "User:"
EVERYBODY = f"{USER}{WILDCARD}"
_SHOWN_MAX = 60


class ResourceType(IntEnum):
    """What a rule is about."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class PatternType(IntEnum):
    """How a rule's resource name is read."""

    MATCH = 2
    """In filters only: every rule that counts for a resource of this name."""
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What is done to a resource."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Permission(IntEnum):
    """What a rule says."""

    DENY = 2
    ALLOW = 3


OPERATIONS: dict[ResourceType, frozenset[Operation]] = {
    ResourceType.TOPIC: frozenset(
        {
            Operation.ALL,
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {Operation.ALL, Operation.READ, Operation.DELETE, Operation.DESCRIBE}
    ),
    ResourceType.CLUSTER: frozenset(
        {
            Operation.ALL,
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset({Operation.ALL, Operation.WRITE, Operation.DESCRIBE}),
}
"""What a rule about each type may name: everything else would never be asked for.

CLUSTER_ACTION is in none: what services do to one another is the cluster's own, not to be given.
"""


class Acl(Struct, frozen=True, kw_only=True, order=True):
    """One rule. All of it is its identity: there is no second one like it."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    operation: Operation
    permission: Permission

    def covers(self, name: str) -> bool:
        """Whether it is about the resource of this name; its type is another question."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)


class AclFilter(Struct, frozen=True, kw_only=True):
    """Matches rules: all that is given must fit."""

    resource_type: int = ANY
    resource_name: str = ""
    pattern_type: int = ANY
    principal: str = ""
    operation: int = ANY
    permission: int = ANY

    def matches(self, acl: Acl) -> bool:
        """Whether a rule fits."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.principal in ("", acl.principal)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self._fits_pattern(acl)
        )

    def _fits_pattern(self, acl: Acl) -> bool:
        if self.pattern_type == PatternType.MATCH:
            return not self.resource_name or acl.covers(self.resource_name)
        return self.pattern_type in (ANY, acl.pattern_type) and self.resource_name in (
            "",
            acl.resource_name,
        )


def check_acl(acl: Acl) -> None:
    """Refuse a rule that could never count. Raises InvalidRequestError."""
    if acl.pattern_type is PatternType.MATCH:
        raise InvalidRequestError("pattern_type MATCH is for filters only", field="pattern_type")
    if acl.operation not in OPERATIONS[acl.resource_type]:
        raise InvalidRequestError(
            f"no rule can allow or deny {acl.operation.name} on a {acl.resource_type.name}: no RPC"
            " needs that permission",
            field="operation",
        )
    _check_resource_name(acl)
    name = acl.principal.removeprefix(USER)
    if name == acl.principal or not name:
        raise InvalidRequestError(
            f"principal {_shown(acl.principal)!r} is not of the form User:name", field="principal"
        )
    _check_length("principal", acl.principal)


def _check_resource_name(acl: Acl) -> None:
    if not acl.resource_name:
        raise InvalidRequestError("resource_name is empty", field="resource_name")
    _check_length("resource_name", acl.resource_name)
    if acl.resource_type is ResourceType.CLUSTER and (
        acl.resource_name != CLUSTER_NAME or acl.pattern_type is not PatternType.LITERAL
    ):
        raise InvalidRequestError(
            f"resource_name of the cluster is {_shown(acl.resource_name)!r}:"
            f" must be {CLUSTER_NAME!r}, and literal",
            field="resource_name",
        )


def _check_length(field: str, text: str) -> None:
    if len(text) > NAME_LENGTH_MAX:
        raise InvalidRequestError(
            f"{field} {_shown(text)!r} has {len(text)} characters: at most {NAME_LENGTH_MAX}",
            field=field,
        )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"

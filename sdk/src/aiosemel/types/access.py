"""Access rules and quotas, as the admin client takes and gives them; Kafka's words.

Enums are texts, lower case, as the command line writes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ResourceType(StrEnum):
    """The kinds of resources that access rules name."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional_id"


class PatternType(StrEnum):
    """The meaning of a rule's resource name."""

    LITERAL = "literal"
    """The whole name; ``*`` is every name."""
    PREFIXED = "prefixed"
    """The name's beginning."""
    MATCH = "match"
    """In filters only: every rule that counts for a resource of this name."""


class AclOperation(StrEnum):
    """An operation on a resource; docs/reference/permissions.md lists those of each call."""

    ALL = "all"
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    CLUSTER_ACTION = "cluster_action"
    DESCRIBE_CONFIGS = "describe_configs"
    ALTER_CONFIGS = "alter_configs"
    IDEMPOTENT_WRITE = "idempotent_write"


class AclPermission(StrEnum):
    """The effect of a rule; a rule that denies wins over all rules that allow."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBinding:
    """One access rule."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType = PatternType.LITERAL
    principal: str
    """``User:name``, or ``User:*`` for everybody."""
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBindingFilter:
    """Matches rules by the given fields: all of them must fit."""

    resource_type: ResourceType | None = None
    resource_name: str | None = None
    pattern_type: PatternType | None = None
    principal: str | None = None
    operation: AclOperation | None = None
    permission: AclPermission | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuota:
    """The limits of one user at each service instance."""

    user: str | None
    """None: all users without limits of their own."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """``producer_byte_rate``, ``consumer_byte_rate`` (bytes per second), ``request_rate``."""

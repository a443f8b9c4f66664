"""Decides each permission from the access rules of the cluster's metadata. Pure.

Theory of operation. A rule that denies wins over all that allow; a resource about which there is no
rule is denied, unless the settings say otherwise; super users and the cluster's own services may do
everything. READ, WRITE, DELETE and ALTER let describe too, ALTER_CONFIGS lets DESCRIBE_CONFIGS; to
deny one of them denies only that (Kafka: ``StandardAuthorizerData``, ``AclOperation``).

A decision is kept until there are other rules. Rules are looked up by the principal, then by type:
of these there are few, however many rules there are.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from semel_common.wire.messages.request_bounds import NAME_LENGTH_MAX
from semel_runtime.access.acls import (
    EVERYBODY,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

DECISIONS_MAX = 100_000
"""Decisions that are kept; past it, all are forgotten."""

_LET_DESCRIBE = frozenset(
    {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE}
)
_LET_DESCRIBE_CONFIGS = frozenset({Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS})


class Question(NamedTuple):
    """Whether a principal may do something to a resource."""

    principal: str
    operation: Operation
    resource_type: ResourceType
    resource_name: str


class Authorizer:
    """Answers questions from one set of rules."""

    def __init__(
        self,
        acls: tuple[Acl, ...] = (),
        *,
        super_users: frozenset[str] = frozenset(),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        """Take the rules; ``super_users`` are principals such as ``User:admin``."""
        self._super_users = super_users
        self._allow_everyone = allow_everyone_if_no_acl_found
        self._acls: tuple[Acl, ...] = ()
        self._by_principal: dict[tuple[str, ResourceType], list[Acl]] = {}
        self._literal: set[tuple[ResourceType, str]] = set()
        self._prefixed: list[Acl] = []
        self._decisions: dict[Question, bool] = {}
        self.update(acls)

    def update(self, acls: tuple[Acl, ...]) -> None:
        """Take other rules, and forget the decisions by the earlier rules."""
        self._acls = acls
        self._decisions = {}
        by_principal = defaultdict(list)
        for acl in acls:
            by_principal[acl.principal, acl.resource_type].append(acl)
        self._by_principal = dict(by_principal)
        self._prefixed = [acl for acl in acls if acl.pattern_type is PatternType.PREFIXED]
        self._literal = {
            (acl.resource_type, acl.resource_name)
            for acl in acls
            if acl.pattern_type is PatternType.LITERAL
        }

    @property
    def acls(self) -> tuple[Acl, ...]:
        """The rules by which it decides."""
        return self._acls

    def allows(self, question: Question) -> bool:
        """Return whether it is allowed."""
        if len(question.resource_name) > NAME_LENGTH_MAX:
            return self._decide(question)  # No resource has such a name: it is not remembered.
        known = self._decisions.get(question)
        if known is None:
            if len(self._decisions) >= DECISIONS_MAX:
                self._decisions = {}
            known = self._decisions[question] = self._decide(question)
        return known

    def allows_any(self, principal: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether it is allowed on some resource of a type, whether there is one or not."""
        if self._is_super(principal):
            return True
        return any(
            acl.permission is Permission.ALLOW
            and acl.operation in (operation, Operation.ALL)
            and not self._denies_all_of(principal, operation, acl)
            for acl in self._of(principal, resource_type)
        )

    def may_describe_any(self, principal: str, resource_type: ResourceType) -> bool:
        """Return whether there can be a resource of a type that a principal may describe.

        That costs as much as its rules, however many resources there are.
        """
        if self._is_super(principal) or self._allow_everyone:
            return True
        return any(
            _allows(acl, Operation.DESCRIBE)
            and not self._denies_all_of(principal, Operation.DESCRIBE, acl)
            for acl in self._of(principal, resource_type)
        )

    def _decide(self, question: Question) -> bool:
        if self._is_super(question.principal):
            return True
        found = [
            acl
            for acl in self._of(question.principal, question.resource_type)
            if acl.covers(question.resource_name)
        ]
        if any(_denies(acl, question.operation) for acl in found):
            return False
        if any(_allows(acl, question.operation) for acl in found):
            return True
        return self._allow_everyone and not self._has_rules(question)

    def _is_super(self, principal: str) -> bool:
        return principal in self._super_users

    def _of(self, principal: str, resource_type: ResourceType) -> Iterable[Acl]:
        for fromkey in dict.fromkeys((principal, EVERYBODY)):
            yield from self._by_principal.get((fromkey, resource_type), ())

    def _has_rules(self, question: Question) -> bool:
        """Whether anybody is allowed or denied anything on the resource."""
        of_type = question.resource_type
        return (
            (of_type, question.resource_name) in self._literal
            or (of_type, "*") in self._literal
            or any(
                acl.resource_type is of_type and acl.covers(question.resource_name)
                for acl in self._prefixed
            )
        )

    def _denies_all_of(self, principal: str, operation: Operation, allowing: Acl) -> bool:
        """Whether a rule denies every resource that another rule allows."""
        return any(
            _denies(acl, operation) and _is_within(allowing, acl)
            for acl in self._of(principal, allowing.resource_type)
        )


def _denies(acl: Acl, operation: Operation) -> bool:
    return acl.permission is Permission.DENY and acl.operation in (operation, Operation.ALL)


def _allows(acl: Acl, operation: Operation) -> bool:
    if acl.permission is not Permission.ALLOW:
        return False
    if acl.operation in (operation, Operation.ALL):
        return True
    if operation is Operation.DESCRIBE:
        return acl.operation in _LET_DESCRIBE
    return operation is Operation.DESCRIBE_CONFIGS and acl.operation in _LET_DESCRIBE_CONFIGS


def _is_within(inner: Acl, outer: Acl) -> bool:
    """Whether all names that one pattern covers are covered by another."""
    if outer.pattern_type is PatternType.LITERAL:
        return outer.resource_name == "*" or (
            inner.pattern_type is PatternType.LITERAL and inner.resource_name == outer.resource_name
        )
    return inner.resource_name != "*" and inner.resource_name.startswith(outer.resource_name)

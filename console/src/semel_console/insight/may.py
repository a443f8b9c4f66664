"""May a principal do something? The rule that decides, from the rules of a cluster. No I/O.

The services decide by the same order: a rule that denies wins over all that allow, and a resource
without any rule is denied unless the settings say otherwise. Settings are not known here: super
users may do everything, and no rule says who they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from aiosemel import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

EVERYBODY = "User:*"
_LET_DESCRIBE = frozenset(
    {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether a principal may do something to a resource."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An answer, and the rule that decided."""

    allowed: bool
    rule: AclBinding | None
    """None: no rule is about this principal, operation and resource."""
    has_rules: bool
    """Whether any rule, of any principal, is about the resource."""


def may(question: Question, rules: Iterable[AclBinding]) -> Verdict:
    """Return whether a principal may do something, by rules of any resources."""
    about = [rule for rule in rules if _covers(rule, question)]
    own = [rule for rule in about if rule.principal in {question.principal, EVERYBODY}]
    for rule in own:
        if rule.permission is AclPermission.DENY and _denies(rule, question.operation):
            return Verdict(allowed=False, rule=rule, has_rules=True)
    for rule in own:
        if rule.permission is AclPermission.ALLOW and _allows(rule, question.operation):
            return Verdict(allowed=True, rule=rule, has_rules=True)
    return Verdict(allowed=False, rule=None, has_rules=bool(about))


def _covers(rule: AclBinding, question: Question) -> bool:
    if rule.resource_type is not question.resource_type:
        return False
    if rule.pattern_type is PatternType.PREFIXED:
        return question.resource_name.startswith(rule.resource_name)
    return rule.resource_name in {question.resource_name, "*"}


def _denies(rule: AclBinding, operation: AclOperation) -> bool:
    return rule.operation in {operation, AclOperation.ALL}


def _allows(rule: AclBinding, operation: AclOperation) -> bool:
    if _denies(rule, operation):
        return True
    if operation is AclOperation.DESCRIBE:
        return rule.operation in _LET_DESCRIBE
    return (
        operation is AclOperation.DESCRIBE_CONFIGS and rule.operation is AclOperation.ALTER_CONFIGS
    )

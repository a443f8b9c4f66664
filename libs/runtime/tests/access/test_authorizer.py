"""Decisions of the authorizer by access rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel_common.errors import InvalidRequestError
from semel_runtime.access import authorizer as authorizer_module
from semel_runtime.access.acls import (
    CLUSTER_NAME,
    EVERYBODY,
    OPERATIONS,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_acl,
)
from semel_runtime.access.authorizer import Authorizer, Question

ALICE, BOB = "User:alice", "User:bob"
TOPIC = ResourceType.TOPIC


def rule(
    name: str = "orders",
    operation: Operation = Operation.READ,
    *,
    principal: str = ALICE,
    deny: bool = False,
    prefixed: bool = False,
    resource_type: ResourceType = TOPIC,
) -> Acl:
    return Acl(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        operation=operation,
        permission=Permission.DENY if deny else Permission.ALLOW,
    )


def allows(
    *rules: Acl,
    name: str = "orders",
    operation: Operation = Operation.READ,
    principal: str = ALICE,
    everyone: bool = False,
) -> bool:
    authorizer = Authorizer(tuple(rules), allow_everyone_if_no_acl_found=everyone)
    return authorizer.allows(Question(principal, operation, TOPIC, name))


def test_without_a_rule_nothing_is_allowed() -> None:
    assert not allows()


def test_a_rule_is_about_its_principal_operation_and_resource_only() -> None:
    assert allows(rule())
    assert not allows(rule(), principal=BOB)
    assert not allows(rule(), operation=Operation.WRITE)
    assert not allows(rule(), name="orders2")
    assert not allows(rule(resource_type=ResourceType.GROUP))


def test_everybody_is_everybody() -> None:
    assert allows(rule(principal="User:*"))
    assert not allows(rule(), rule(principal="User:*", deny=True))


@pytest.mark.parametrize(
    ("name", "covered"), [("orders", True), ("orders-eu", True), ("order", False), ("x", False)]
)
def test_a_prefix_covers_what_begins_so(name: str, covered: bool) -> None:
    assert allows(rule(prefixed=True), name=name) is covered


def test_a_star_is_every_name_but_as_a_prefix_it_is_a_star() -> None:
    assert allows(rule("*"), name="anything")
    assert not allows(rule("*", prefixed=True), name="anything")


@pytest.mark.parametrize(
    "denying",
    [
        rule(deny=True),
        rule("*", deny=True),
        rule("ord", prefixed=True, deny=True),
        rule(operation=Operation.ALL, deny=True),
        rule(principal="User:*", deny=True),
    ],
)
def test_a_rule_that_denies_wins_over_all_that_allow(denying: Acl) -> None:
    assert not allows(rule(), rule("*"), rule(operation=Operation.ALL), denying)


@pytest.mark.parametrize(
    "operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER]
)
def test_a_user_of_a_resource_may_describe_it(operation: Operation) -> None:
    assert allows(rule(operation=operation), operation=Operation.DESCRIBE)
    assert not allows(rule(operation=operation), operation=Operation.DESCRIBE_CONFIGS)


def test_a_user_that_alters_configs_may_describe_them_and_not_the_topic() -> None:
    altering = rule(operation=Operation.ALTER_CONFIGS)
    assert allows(altering, operation=Operation.DESCRIBE_CONFIGS)
    assert not allows(altering, operation=Operation.DESCRIBE)


def test_to_deny_reading_denies_only_reading() -> None:
    rules = rule(deny=True), rule(operation=Operation.DESCRIBE)
    assert allows(*rules, operation=Operation.DESCRIBE)


def test_super_users_may_do_everything() -> None:
    authorizer = Authorizer((rule(deny=True),), super_users=frozenset({ALICE}))
    assert authorizer.allows(Question(ALICE, Operation.READ, TOPIC, "orders"))
    assert authorizer.allows_any(ALICE, Operation.WRITE, TOPIC)


def test_a_resource_without_rules_is_open_if_the_settings_say_so() -> None:
    assert allows(everyone=True)
    assert not allows(rule(principal=BOB), everyone=True)
    assert not allows(rule("ord", principal=BOB, prefixed=True), everyone=True)
    assert not allows(rule("*", principal=BOB), everyone=True)
    assert allows(rule(principal=BOB, resource_type=ResourceType.GROUP), everyone=True)


def test_decisions_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer_module, "DECISIONS_MAX", 2)
    authorizer = Authorizer((rule("*"),))
    for number in range(10):
        assert authorizer.allows(Question(ALICE, Operation.READ, TOPIC, f"topic-{number}"))
    assert len(authorizer._decisions) <= 2


def test_other_rules_count_at_once() -> None:
    authorizer = Authorizer()
    question = Question(ALICE, Operation.READ, TOPIC, "orders")
    assert not authorizer.allows(question)
    authorizer.update((rule(),))
    assert authorizer.allows(question)
    authorizer.update((rule(), rule(deny=True)))
    assert not authorizer.allows(question)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((), False),
        ((rule(operation=Operation.WRITE),), True),
        ((rule("o", Operation.WRITE, prefixed=True),), True),
        ((rule(operation=Operation.ALL),), True),
        ((rule(operation=Operation.READ),), False),
        ((rule(operation=Operation.WRITE), rule(operation=Operation.WRITE, deny=True)), False),
        ((rule(operation=Operation.WRITE), rule("*", Operation.WRITE, deny=True)), False),
        ((rule("*", Operation.WRITE), rule(operation=Operation.WRITE, deny=True)), True),
        (
            (rule(operation=Operation.WRITE), rule("o", Operation.ALL, deny=True, prefixed=True)),
            False,
        ),
    ],
)
def test_rules_say_whether_a_user_may_write_to_any_topic(
    rules: tuple[Acl, ...], expected: bool
) -> None:
    assert Authorizer(rules).allows_any(ALICE, Operation.WRITE, TOPIC) is expected


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b"])
RULES = st.lists(
    st.builds(
        Acl,
        resource_type=st.just(TOPIC),
        resource_name=NAMES,
        pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
        principal=st.sampled_from([ALICE, BOB, "User:*"]),
        operation=st.sampled_from([Operation.READ, Operation.ALL, Operation.DESCRIBE]),
        permission=st.sampled_from(Permission),
    ),
    max_size=6,
)


@given(RULES, st.sampled_from([ALICE, BOB]), st.sampled_from(["a", "ab", "abc", "b"]))
def test_the_order_of_rules_means_nothing_and_more_denials_never_allow(
    rules: list[Acl], principal: str, name: str
) -> None:
    question = Question(principal, Operation.DESCRIBE, TOPIC, name)
    allowed = Authorizer(tuple(rules)).allows(question)
    assert Authorizer(tuple(reversed(rules))).allows(question) is allowed
    without = tuple(each for each in rules if each.permission is Permission.ALLOW)
    assert Authorizer(without).allows(question) or not allowed
    # What a filter finds by MATCH are exactly the rules that count for the name.
    match = AclFilter(resource_name=name, pattern_type=PatternType.MATCH)
    found = tuple(each for each in rules if match.matches(each))
    assert Authorizer(found).allows(question) is allowed


@pytest.mark.parametrize("resource_type", ResourceType)
@pytest.mark.parametrize("operation", Operation)
def test_only_what_something_asks_for_can_be_given(
    resource_type: ResourceType, operation: Operation
) -> None:
    name = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else "x"
    given_rule = rule(name, operation, resource_type=resource_type)
    if operation in OPERATIONS[resource_type]:
        check_acl(given_rule)
    else:
        with pytest.raises(InvalidRequestError):
            check_acl(given_rule)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (rule(""), "resource_name"),
        (rule("x" * 256), "resource_name"),
        (rule(principal="alice"), "principal"),
        (rule(principal="User:"), "principal"),
        (rule(principal="User:" + "x" * 256), "principal"),
        (
            rule("other", Operation.CREATE, resource_type=ResourceType.CLUSTER),
            "resource_name",
        ),
    ],
)
def test_a_rule_that_could_never_count_is_refused(wrong: Acl, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refusal:
        check_acl(wrong)
    assert refusal.value.details["field"] == field


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), True),
        (AclFilter(resource_name="orders"), True),
        (AclFilter(resource_name="order"), False),
        (AclFilter(pattern_type=PatternType.PREFIXED), False),
        (AclFilter(principal=BOB), False),
        (AclFilter(operation=Operation.WRITE), False),
        (AclFilter(permission=Permission.DENY), False),
        (AclFilter(resource_type=ResourceType.GROUP), False),
        (AclFilter(pattern_type=PatternType.MATCH), True),
    ],
)
def test_a_filter_matches_what_fits_in_all_that_is_given(wanted: AclFilter, found: bool) -> None:
    assert wanted.matches(rule()) is found


@given(
    rules=st.lists(
        st.builds(
            rule,
            st.sampled_from(["a", "ab", "b", "*"]),
            st.sampled_from(sorted(OPERATIONS[TOPIC])),
            principal=st.sampled_from([ALICE, EVERYBODY]),
            deny=st.booleans(),
            prefixed=st.booleans(),
        ),
        max_size=4,
    ),
    everyone=st.booleans(),
)
def test_what_may_be_described_is_never_hidden_by_the_short_answer(
    rules: list[Acl], everyone: bool
) -> None:
    authorizer = Authorizer(tuple(rules), allow_everyone_if_no_acl_found=everyone)
    names = ("a", "ab", "abc", "b", "c")
    if any(authorizer.allows(Question(ALICE, Operation.DESCRIBE, TOPIC, name)) for name in names):
        assert authorizer.may_describe_any(ALICE, TOPIC)
    if not rules and not everyone:
        assert not authorizer.may_describe_any(ALICE, TOPIC)

"""Access rules and quotas in the controller: all or none, no rule twice, and limits of both."""

import pytest
from controller_harness import ControllerHarness

from semel_common.errors import InvalidRequestError, ThrottlingQuotaExceededError
from semel_coordinator.controller.machine import ControllerLimits, QuotaChange
from semel_runtime.access.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from semel_runtime.access.client_quotas import ClientQuota


def rule(name: str = "orders", operation: Operation = Operation.READ) -> Acl:
    return Acl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal="User:alice",
        operation=operation,
        permission=Permission.ALLOW,
    )


def test_a_rule_is_part_of_the_metadata_from_then_on() -> None:
    controller = ControllerHarness()
    before = controller.image.version
    assert controller.run(controller.machine.create_acls([rule(), rule("b")])) == [
        rule(),
        rule("b"),
    ]
    assert controller.image.acls == (rule("b"), rule())
    assert controller.image.version == before + 2


def test_a_rule_that_is_there_is_not_added_again() -> None:
    controller = ControllerHarness()
    controller.run(controller.machine.create_acls([rule()]))
    assert controller.run(controller.machine.create_acls([rule(), rule()])) == []
    assert controller.records == []


def test_of_rules_with_a_wrong_one_none_is_added() -> None:
    controller = ControllerHarness()
    with pytest.raises(InvalidRequestError):
        controller.machine.create_acls([rule(), rule("x", Operation.CLUSTER_ACTION)])
    assert controller.image.acls == ()


def test_there_are_not_more_rules_than_the_limit() -> None:
    controller = ControllerHarness(ControllerLimits(acls_max=1))
    controller.run(controller.machine.create_acls([rule()]))
    with pytest.raises(ThrottlingQuotaExceededError):
        controller.machine.create_acls([rule("b")])


def test_what_any_filter_matches_is_removed() -> None:
    controller = ControllerHarness()
    controller.run(controller.machine.create_acls([rule("a"), rule("b"), rule("c")]))
    filters = [AclFilter(resource_name="a"), AclFilter(resource_name="c")]
    assert controller.run(controller.machine.delete_acls(filters)) == [rule("a"), rule("c")]
    assert controller.image.acls == (rule("b"),)


def test_a_dry_run_changes_nothing() -> None:
    controller = ControllerHarness()
    controller.run(controller.machine.create_acls([rule("a")]))
    change = QuotaChange(user="alice", set_={"request_rate": 5})
    for dry in (
        controller.machine.create_acls([rule("b")], validate_only=True),
        controller.machine.delete_acls([AclFilter()], validate_only=True),
        controller.machine.alter_client_quotas([change], validate_only=True),
    ):
        assert dry.response
        assert not list(dry.records)


def test_limits_of_users_are_part_of_the_metadata() -> None:
    controller = ControllerHarness()
    change = QuotaChange(user="alice", set_={"request_rate": 5})
    limited = ClientQuota(user="alice", limits=(("request_rate", 5),))
    assert controller.run(controller.machine.alter_client_quotas([change])) == [limited]
    assert controller.image.client_quotas == (limited,)
    assert controller.run(controller.machine.alter_client_quotas([change])) == [limited]
    assert controller.records == []


def test_a_user_without_a_limit_left_is_not_mentioned() -> None:
    controller = ControllerHarness()
    change = QuotaChange(user="alice", set_={"request_rate": 5})
    controller.run(controller.machine.alter_client_quotas([change]))
    gone = QuotaChange(user="alice", set_={}, remove=("request_rate",))
    controller.run(controller.machine.alter_client_quotas([gone]))
    assert controller.image.client_quotas == ()


def test_one_user_is_changed_once_in_a_request() -> None:
    change = QuotaChange(user="alice", set_={"request_rate": 5})
    with pytest.raises(InvalidRequestError):
        ControllerHarness().machine.alter_client_quotas([change, change])


def test_there_are_not_more_users_with_limits_than_the_limit() -> None:
    controller = ControllerHarness(ControllerLimits(client_quotas_max=1))
    controller.run(
        controller.machine.alter_client_quotas([QuotaChange(user="a", set_={"request_rate": 5})])
    )
    with pytest.raises(ThrottlingQuotaExceededError):
        controller.machine.alter_client_quotas([QuotaChange(user="b", set_={"request_rate": 5})])

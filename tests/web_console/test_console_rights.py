"""What the console lets a person do: nothing in read-only mode, and only as the user's own call."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_console.console_stage import Stage, console_stage

from aiosemel import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    TransactionAbortedError,
)
from semel_console.insight.may import Question, may
from semel_console.mode import Mode
from semel_console.options import ConsoleOptions
from semel_runtime.access import acls
from semel_runtime.access.authorizer import Authorizer
from semel_runtime.access.authorizer import Question as ServiceQuestion

REASON = {"reason": "its host is lost"}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    options = ConsoleOptions(bootstrap="h:1", mode=Mode.OPERATOR, operator="ada@host")
    async with console_stage(options=options) as made:
        await made.client.admin().create_topic("orders", partitions=1)
        yield made


async def action_of(stage: Stage, transactional_id: str, do: str) -> str:
    """Return the address of an action, as the page of the transaction offers it."""
    page = await stage.page("/transaction", transactional_id=transactional_id, epoch=0)
    (address,) = (each for each in page.links if each.startswith(f"/action?do={do}&"))
    return address


async def test_a_dry_run_changes_nothing_and_an_abort_needs_a_reason(stage: Stage) -> None:
    await stage.open_transaction("app", "orders")
    address = await action_of(stage, "app", "abort")
    assert (
        "Dry run: the action is possible, and reaches 1 partition"
        in (await stage.page(address)).text
    )
    refused = await stage.browser.post(address, data={"reason": " "})
    assert refused.status_code == 400
    assert "Give a reason." in refused.text
    assert "It is open" in (await stage.page("/transaction", transactional_id="app", epoch=0)).text


async def test_an_abort_is_told_to_the_producer_and_names_the_operator(stage: Stage) -> None:
    producer = await stage.open_transaction("app", "orders")
    done = await stage.browser.post(await action_of(stage, "app", "abort"), data=REASON)
    assert (done.status_code, done.headers["location"]) == (
        303,
        "/transaction?transactional_id=app&epoch=0",
    )
    page = await stage.until("Ended by hand", "/transaction", transactional_id="app", epoch=0)
    assert "Ended by hand: ada@host" in page.text
    assert "its host is lost" in page.text
    with pytest.raises(TransactionAbortedError):
        await producer.commit()


async def test_a_fence_takes_the_id_away(stage: Stage) -> None:
    await stage.open_transaction("app", "orders")
    done = await stage.browser.post(await action_of(stage, "app", "fence"), data=REASON)
    assert done.status_code == 303
    page = await stage.until("Ended by hand", "/transaction", transactional_id="app", epoch=0)
    assert "No: it is aborted" in page.text


async def test_a_prepared_transaction_is_completed_after_two_confirmations(stage: Stage) -> None:
    producer = await stage.open_transaction("two-phase", "orders")
    await producer.prepare()
    address = await action_of(stage, "two-phase", "commit-prepared")
    whole = {"typed": "two-phase", "sure": "yes", **REASON}
    for lacks in ({"typed": ""}, {"typed": "other"}, {"sure": ""}, {"reason": " "}):
        assert (await stage.browser.post(address, data=whole | lacks)).status_code == 400
    done = await stage.browser.post(address, data=whole)
    assert done.status_code == 303
    page = await stage.until(
        "Yes: it is committed.", "/transaction", transactional_id="two-phase", epoch=0
    )
    assert "/action" not in "".join(page.links)
    page = await stage.until(
        "Ended by hand: ada@host", "/transaction", transactional_id="two-phase", epoch=0
    )
    assert "its host is lost" in page.text


async def test_an_action_that_cannot_be_done_says_why(stage: Stage) -> None:
    producer = await stage.open_transaction("app", "orders")
    address = await action_of(stage, "app", "abort")
    await producer.commit()
    page = await stage.page(address)
    assert "Dry run: it can be done" not in page.text
    assert "ommitted" in page.text
    assert (await stage.browser.post(address, data=REASON)).status_code == 502


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
async def test_no_other_site_makes_the_console_act(stage: Stage, site: str | None) -> None:
    await stage.open_transaction("app", "orders")
    address = await action_of(stage, "app", "abort")
    headers = {} if site is None else {"sec-fetch-site": site}
    if site is None:
        del stage.browser.headers["sec-fetch-site"]
    assert (await stage.browser.post(address, data=REASON, headers=headers)).status_code == 403


async def test_a_form_without_bounds_is_not_read(stage: Stage) -> None:
    await stage.open_transaction("app", "orders")
    address = await action_of(stage, "app", "abort")
    assert (await stage.browser.post(address, data={"reason": "x" * 501})).status_code == 400
    assert (await stage.browser.post(address, content=b"x" * 40_000)).status_code == 400
    assert (await stage.browser.post(address, content=b"\xff=\xff")).status_code == 400


async def test_a_read_only_console_refuses_every_action() -> None:
    async with console_stage() as stage:
        await stage.client.admin().create_topic("orders", partitions=1)
        producer = await stage.open_transaction("app", "orders")
        page = await stage.page("/transaction", transactional_id="app", epoch=0)
        assert "/action" not in "".join(page.links)
        described = await stage.client.admin().describe_transactions("app")
        for do in ("abort", "fence", "commit-prepared", "abort-prepared"):
            address = (
                f"/action?do={do}&transactional_id=app&epoch=0&producer_id={described.producer_id}"
            )
            assert (await stage.browser.get(address)).status_code == 403
            assert (await stage.browser.post(address, data=REASON)).status_code == 403
        await producer.commit()


async def test_a_user_is_told_which_rule_decides(stage: Stage) -> None:
    await stage.client.admin().access.create_acls(
        [
            AclBinding(
                resource_type=ResourceType.TOPIC,
                resource_name="ord",
                pattern_type=PatternType.PREFIXED,
                principal="User:billing",
                operation=AclOperation.WRITE,
            ),
            AclBinding(
                resource_type=ResourceType.TRANSACTIONAL_ID,
                resource_name="nightly",
                principal="User:*",
                operation=AclOperation.ALL,
                permission=AclPermission.DENY,
            ),
        ]
    )
    page = await stage.page(
        "/rules",
        principal="User:billing",
        operation="write",
        topic="orders",
        transactional_id="nightly",
    )
    assert (
        "Yes: User:billing may write topic orders, by the rule “allow User:billing write every"
        " topic that begins with ord”." in page.text
    )
    assert "No: User:billing may not write transactional id nightly, by the rule “deny" in page.text
    other = await stage.page("/rules", principal="User:eve", operation="read", topic="orders")
    assert "no rule allows it, and there are rules about this resource" in other.text


NAMES = ("a", "ab", "abc", "*", "b")
PRINCIPALS = ("User:a", "User:b", "User:*")
RULES = st.builds(
    AclBinding,
    resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    resource_name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(PRINCIPALS),
    operation=st.sampled_from(list(AclOperation)),
    permission=st.sampled_from(list(AclPermission)),
)
QUESTIONS = st.builds(
    Question,
    principal=st.sampled_from(PRINCIPALS[:2]),
    operation=st.sampled_from([each for each in AclOperation if each is not AclOperation.ALL]),
    resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    resource_name=st.sampled_from(["a", "ab", "abc", "b", "c"]),
)


@given(st.lists(RULES, max_size=6), QUESTIONS)
def test_the_console_decides_as_the_services_do(rules: list[AclBinding], asked: Question) -> None:
    authorizer = Authorizer(
        tuple(
            acls.Acl(
                resource_type=acls.ResourceType[rule.resource_type.name],
                resource_name=rule.resource_name,
                pattern_type=acls.PatternType[rule.pattern_type.name],
                principal=rule.principal,
                operation=acls.Operation[rule.operation.name],
                permission=acls.Permission[rule.permission.name],
            )
            for rule in rules
        )
    )
    question = ServiceQuestion(
        asked.principal,
        acls.Operation[asked.operation.name],
        acls.ResourceType[asked.resource_type.name],
        asked.resource_name,
    )
    assert may(asked, rules).allowed == authorizer.allows(question)

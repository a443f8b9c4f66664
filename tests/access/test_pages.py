"""Lists in pages over the whole way: the SDK follows every page, and a page shows what it may."""

import pytest

from access.cluster import ADMIN, COORDINATOR, GROUP_COORDINATOR, OTHER_COORDINATOR, Cluster
from aiosemel import AclBinding, AclOperation, ResourceType, SemelClient, TopicPartition
from aiosemel._admin import move_admin, topic_admin
from aiosemel.errors import InvalidRequestError
from semel.common.v1.errors_pb2 import ErrorCode
from semel.coordinator.v1 import acls_pb2 as acls
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel.group.v1 import group_pb2 as group
from semel_common.wire import methods
from semel_coordinator.transactions.machine.queries import TransactionQueries
from semel_group.machine.groups import Groups
from semel_runtime.access.rpc_permissions import NEEDS
from semel_runtime.authentication.principal import Principal
from semel_runtime.server import pages
from semel_runtime.testing.virtual_time import in_virtual_time

ALICE = Principal(name="alice")
COUNT = 8
TOO_LARGE = ErrorCode.ERROR_CODE_MESSAGE_TOO_LARGE


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ITEMS_MAX", 3)
    for module in (topic_admin, move_admin):
        monkeypatch.setattr(module, "TOPICS_IN_PAGE", 3)


def described(resource_type: ResourceType, name: str) -> AclBinding:
    return AclBinding(
        resource_type=resource_type,
        resource_name=name,
        principal="User:alice",
        operation=AclOperation.DESCRIBE,
    )


async def fill(client: SemelClient) -> None:
    """Make more of everything than a page has."""
    for number in range(COUNT):
        await client.admin().create_topic(f"topic-{number}")
        await client.admin().groups.alter_offsets(f"group-{number}", {("topic-0", 0): 0})
        await client.admin().access.create_acls([described(ResourceType.TOPIC, f"topic-{number}")])
        await client.admin().access.alter_client_quotas(
            f"u{number}", set_limits={"request_rate": 9}
        )
        producer = client.transactional_producer(f"app-{number}")
        await producer.init_transactions()
        await producer.close()
    offsets = {(f"topic-{number}", 0): 0 for number in range(COUNT)}
    await client.admin().groups.alter_offsets("group-0", offsets)


@in_virtual_time
async def test_the_sdk_follows_every_page_of_every_list() -> None:
    numbers = range(COUNT)
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        await fill(client)
        await cluster.settled()
        asked = client.admin()
        topics = [topic.name for topic in await asked.list_topics()]
        assert topics == [f"topic-{number}" for number in numbers]
        groups = [each.group_id for each in await asked.list_groups()]
        assert groups == [f"group-{number}" for number in numbers]
        ids = [transaction.transactional_id for transaction in await asked.list_transactions()]
        assert ids == [f"app-{number}" for number in numbers]
        with pytest.MonkeyPatch.context() as small:
            small.setattr(pages, "BYTES_MAX", 60)
            offsets = await asked.list_consumer_group_offsets("group-0")
        assert set(offsets) == {TopicPartition(f"topic-{number}", 0) for number in numbers}
        rules = [acl.resource_name for acl in await asked.access.describe_acls()]
        assert rules == [f"topic-{number}" for number in numbers]
        users = [client_quota.user for client_quota in await asked.access.describe_client_quotas()]
        assert users == [f"u{number}" for number in numbers]
        assert await asked.moves.list_partition_reassignments() == {}


@in_virtual_time
async def test_offsets_of_a_group_come_in_pages_of_a_limit_or_of_all_that_fits() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        await fill(client)
        request = group.FetchOffsetsRequest(group_id="group-0", all_partitions=True)
        whole = await cluster.ask(ADMIN, GROUP_COORDINATOR, methods.FETCH_OFFSETS, request)
        assert (len(whole.offsets), whole.next_page_token) == (COUNT, "")
        request.limit = 3
        found: list[str] = []
        while request.page_token or not found:
            page = await cluster.ask(ADMIN, GROUP_COORDINATOR, methods.FETCH_OFFSETS, request)
            assert len(page.offsets) <= 3
            found += [offset.topic for offset in page.offsets]
            request.page_token = page.next_page_token
        assert found == [offset.topic for offset in whole.offsets]


@in_virtual_time
async def test_a_page_leaves_out_what_its_caller_may_not_see_and_leads_on() -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        await fill(client)
        await client.admin().access.create_acls([described(ResourceType.GROUP, "group-7")])
        await cluster.settled()
        request = group.ListGroupsRequest()
        found: list[list[str]] = []
        while True:
            page = await cluster.ask(ALICE, GROUP_COORDINATOR, methods.LIST_GROUPS, request)
            found.append([each.group_id for each in page.groups])
            request.page_token = page.next_page_token
            if not page.next_page_token:
                break
        assert found == [[], [], ["group-7"]]


@in_virtual_time
async def test_a_caller_that_may_see_nothing_costs_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        await fill(client)
        await cluster.settled()

        def worked(*_: object) -> object:
            raise AssertionError

        monkeypatch.setattr(Groups, "list_candidates", worked)
        monkeypatch.setattr(TransactionQueries, "list_candidates", worked)
        listed = await cluster.ask(
            ALICE, GROUP_COORDINATOR, methods.LIST_GROUPS, group.ListGroupsRequest()
        )
        assert listed == group.ListGroupsResponse()
        for address in (COORDINATOR, OTHER_COORDINATOR):
            request = transactions.ListTransactionsRequest()
            answer = await cluster.ask(ALICE, address, methods.LIST_TRANSACTIONS, request)
            assert answer == transactions.ListTransactionsResponse()


@in_virtual_time
async def test_descriptions_past_what_an_answer_takes_are_to_be_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "BYTES_MAX", 10)
    async with Cluster().started() as cluster, cluster.client(ADMIN) as client:
        await fill(client)
        question = group.DescribeGroupsRequest(group_ids=["group-0", "group-1"])
        groups = await cluster.ask(ADMIN, GROUP_COORDINATOR, methods.DESCRIBE_GROUPS, question)
        first, second = groups.groups
        assert (first.HasField("error"), second.error.code) == (False, TOO_LARGE)
        assert "no room for group 'group-1': ask for it in another request" in second.error.message
        asked = transactions.DescribeTransactionsRequest(transactional_ids=["app-0"] * 2)
        codes = []
        for address in (COORDINATOR, OTHER_COORDINATOR):
            ids = await cluster.ask(ADMIN, address, methods.DESCRIBE_TRANSACTIONS, asked)
            codes.append([description.error.code for description in ids.descriptions])
        assert [0, TOO_LARGE] in codes


@in_virtual_time
async def test_tokens_that_no_page_had_are_refused_and_named() -> None:
    async with Cluster().started() as cluster:
        for token in ("x", "AAAA", "=", "é"):
            with pytest.raises(InvalidRequestError, match=r"page_token|resource_type"):
                await cluster.ask(
                    ADMIN,
                    COORDINATOR,
                    methods.DESCRIBE_ACLS,
                    acls.DescribeAclsRequest(page_token=token),
                )
        for token in ("x", "x:", ":1", "x:-1", "x:99999999999", "x:1 "):
            request = group.FetchOffsetsRequest(group_id="g", all_partitions=True, page_token=token)
            with pytest.raises(InvalidRequestError, match="page_token"):
                await cluster.ask(ADMIN, GROUP_COORDINATOR, methods.FETCH_OFFSETS, request)
        with pytest.raises(InvalidRequestError, match="page_token has 9000 characters"):
            await cluster.ask(
                ADMIN,
                GROUP_COORDINATOR,
                methods.LIST_GROUPS,
                group.ListGroupsRequest(page_token="x" * 9_000),
            )


def test_what_is_empty_at_once_is_nothing_but_what_the_answer_shows() -> None:
    """An answer with more in it than hidden resources must not be left out."""
    for path, needs in NEEDS.items():
        if needs.lists:
            # The clauses of parts of entries hide nothing that is an entry.
            entries = [clause for clause in needs.clauses if "." not in clause.path]  # type: ignore[union-attr]  # lists have no other clauses
            shown = {kind for clause in entries for kind, _ in clause.keys}  # type: ignore[union-attr]
            assert shown == set(needs.lists), path

"""Every RPC, called with every set of permissions that is too small and with the smallest set that
is enough, as a unary call and in a frame.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from google.protobuf.message import Message

from access.case import GROUP, OTHER_TOPIC, TOPIC, TXN, Case, Rule
from access.cases import CASES
from access.cluster import ADMIN, SERVICE, Cluster
from aiosemel import AclBinding, AclPermission, ConsumerGroupMetadata, ProducerOptions
from semel.common.v1.errors_pb2 import Error
from semel_common.error_codes import ErrorCode
from semel_common.errors import AuthorizationError, SemelError
from semel_common.wire import methods
from semel_common.wire.methods import Method
from semel_runtime.access.rpc_permissions import NEEDS
from semel_runtime.authentication.principal import ANONYMOUS, Principal
from semel_runtime.testing.virtual_time import in_virtual_time

REFUSALS: set[int] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
METHODS = [var for var in vars(methods).values() if isinstance(var, Method)]
OPEN = ProducerOptions(transaction_timeout_ms=60_000, registration_delay_ms=0)


def bindings(user: str, rules: tuple[Rule, ...], *, deny: bool = False) -> Iterator[AclBinding]:
    for resource_type, name, operation in rules:
        yield AclBinding(
            resource_type=resource_type,
            resource_name=name,
            principal=f"User:{user}",
            operation=operation,
            permission=AclPermission.DENY if deny else AclPermission.ALLOW,
        )


@asynccontextmanager
async def at_work(case: Case) -> AsyncIterator[tuple[Cluster, Message]]:
    """Run a cluster in which there is something of everything; with the request."""
    cluster = Cluster()
    async with cluster.started(), cluster.client(ADMIN) as client:
        admin = client.admin()
        topic = await admin.create_topic(TOPIC, partitions=2)
        await admin.create_topic(OTHER_TOPIC)
        await admin.groups.alter_offsets(GROUP, {(TOPIC, 0): 0})
        async with client.transactional_producer(TXN, OPEN) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_and_wait(TOPIC, b"ended", partition=0)
            await producer.commit(wait_until_visible=True)
            await producer.begin_transaction()
            await producer.send_and_wait(TOPIC, b"open", partition=0)
            await producer.send_offsets({(TOPIC, 0): 1}, ConsumerGroupMetadata(group_id=GROUP))
            rules = [*bindings("may", case.rules)]
            for number, rule in enumerate(case.rules):
                rest = tuple(each for each in case.rules if each != rule)
                rules += bindings(f"lacks-{number}", rest)
                rules += bindings(f"denied-{number}", case.rules)
                rules += bindings(f"denied-{number}", (rule,), deny=True)
            if rules:
                await admin.access.create_acls(rules)
            await cluster.settled()
            yield cluster, case.request(topic.topic_id)


async def is_refused(cluster: Cluster, case: Case, principal: Principal, request: Message) -> bool:
    """Ask, in both ways if there are two, which must be answered alike."""
    verdicts = {await _is_refused(cluster, case, principal, request, framed=False)}
    if case.method.stream is not None:
        verdicts.add(await _is_refused(cluster, case, principal, request, framed=True))
    (refused,) = verdicts
    return refused


async def _is_refused(
    cluster: Cluster, case: Case, principal: Principal, request: Message, *, framed: bool
) -> bool:
    ask = cluster.ask_framed if framed else cluster.ask
    try:
        answer = await ask(principal, case.address, case.method, request)
    except SemelError as error:
        return error.code in REFUSALS
    if case.shows is not None:
        return not case.shows(answer)
    return any(error.code in REFUSALS for error in errors_in(answer))


def errors_in(message: Message) -> Iterator[Error]:
    if isinstance(message, Error):
        yield message
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for each in value if field.is_repeated else (value,):
                yield from errors_in(each)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@in_virtual_time
async def test_a_service_answers_only_a_caller_with_all_permissions(case: Case) -> None:
    async with at_work(case) as (cluster, request):
        refused = [ANONYMOUS, Principal(name="nobody")]
        for number in range(len(case.rules)):
            refused += [Principal(name=f"lacks-{number}"), Principal(name=f"denied-{number}")]
        for principal in refused:
            assert await is_refused(cluster, case, principal, request), principal
        if case.rules:
            assert not await is_refused(cluster, case, Principal(name="may"), request)
        else:
            assert await is_refused(cluster, case, ADMIN, request), "a super user is no service"
            assert not await is_refused(cluster, case, SERVICE, request)


def test_every_method_is_in_the_table_and_among_the_cases() -> None:
    declared = {each.path for each in METHODS}
    assert NEEDS.keys() == declared
    tried = {case.method.path for case in CASES}
    assert tried == declared - {methods.OPEN_FRAMES.path}


@in_virtual_time
async def test_every_rpc_that_a_service_answers_is_in_the_table() -> None:
    async with Cluster().started() as cluster:
        for app in cluster.apps.values():
            for endpoint in app.handlers:
                assert endpoint.method.path in NEEDS
                assert endpoint.guard is not None


def test_every_rpc_of_every_contract_is_a_method() -> None:
    served = {each.service for each in METHODS}
    pool = METHODS[0].request.DESCRIPTOR.file.pool
    declared = {
        f"/{service}/{method.name}"
        for service in served
        for method in pool.FindServiceByName(service).methods
        if method.name != "Stream"  # Its frames carry methods.
    }
    assert declared == {each.path for each in METHODS}


@in_virtual_time
async def test_a_refusal_names_the_caller_and_the_missing_permission_and_nothing_else() -> None:
    case = next(each for each in CASES if each.name == "GetTransactionOutcome")
    async with at_work(case) as (cluster, request):
        with pytest.raises(AuthorizationError) as refusal:
            await cluster.ask(Principal(name="nobody"), case.address, case.method, request)
    assert refusal.value.message == (
        "User:nobody has no permission DESCRIBE on transactional id 'writer-1'"
    )

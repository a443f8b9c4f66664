"""Access rules on real processes, with certificates and tokens: each caller's permissions."""

from pathlib import Path

import pytest

from aiosemel import AclBinding, AclOperation, ResourceType, SemelClient
from aiosemel.errors import (
    ClusterAuthorizationFailedError,
    SaslAuthenticationError,
    TopicAuthorizationFailedError,
)
from chaos.secured import Secured
from chaos.stage import Stage
from semel.coordinator.v1.cluster_pb2 import MetadataRequest, RegisterInstanceRequest
from semel.coordinator.v1.transactions_pb2 import InquireTransactionsRequest
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import INQUIRE_TRANSACTIONS, METADATA, REGISTER_INSTANCE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TOPIC = "orders"
RULES = {"authorizer": "acls", "super_users": "User:admin"}
MAY_WRITE = [
    AclBinding(
        resource_type=resource,
        resource_name=name,
        principal="User:shop",
        operation=AclOperation.WRITE,
    )
    for resource, name in ((ResourceType.TOPIC, TOPIC), (ResourceType.TRANSACTIONAL_ID, "shop"))
]


async def test_only_services_may_send_the_calls_between_services(tmp_path: Path) -> None:
    """Without any access rules, too: only the cluster's certificate is asked for."""
    secured = Secured(tmp_path / "secrets")
    async with Stage(tmp_path, secured=secured) as stage:
        connector = GrpcConnector(security=secured.user("app"))
        coordinator = connector.connect(stage.bootstrap)
        with pytest.raises(ClusterAuthorizationFailedError, match="RegisterInstance"):
            await coordinator.call(REGISTER_INSTANCE, RegisterInstanceRequest(), timeout_ms=5_000)
        with pytest.raises(ClusterAuthorizationFailedError, match="InquireTransactions"):
            await coordinator.call(
                INQUIRE_TRANSACTIONS, InquireTransactionsRequest(), timeout_ms=5_000
            )
        await coordinator.call(METADATA, MetadataRequest(), timeout_ms=5_000)
        await connector.close()


async def test_a_user_with_a_rule_writes_and_others_do_not(tmp_path: Path) -> None:
    secured = Secured(tmp_path / "secrets", RULES)
    async with Stage(tmp_path, secured=secured) as stage:

        def client(user: str) -> SemelClient:
            return SemelClient(stage.bootstrap, security=secured.user(user))

        async with client("admin") as admin, client("shop") as shop:
            with pytest.raises(ClusterAuthorizationFailedError):
                await shop.admin().access.create_acls(MAY_WRITE)
            await admin.admin().create_topic(TOPIC, partitions=3)
            with pytest.raises(TopicAuthorizationFailedError):
                await shop.producer().send_and_wait(TOPIC, b"too early")
            await admin.admin().access.create_acls(MAY_WRITE)
            producer = shop.transactional_producer("shop")
            await producer.init_transactions()
            for _ in range(3):
                await producer.begin_transaction()
                for partition in range(3):
                    await producer.send(TOPIC, b"allowed", partition=partition)
                await producer.commit(wait_until_visible=True)
        async with client("mallory") as mallory:
            with pytest.raises(TopicAuthorizationFailedError):
                await mallory.producer().send_and_wait(TOPIC, b"not allowed")
        async with SemelClient(stage.bootstrap, security=secured.nobody) as nobody:
            with pytest.raises(SaslAuthenticationError):
                await nobody.admin().describe_cluster()

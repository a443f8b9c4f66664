"""What security costs: the same transactions without any, and with more of it each time, by turns.

Plain text; TLS with certificates of both sides; TLS with tokens; the same with access rules.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

from aiosemel import AclBinding, AclOperation, ResourceType, Security, SemelClient
from bench.identities import Identities
from bench.measure import Figure
from bench.turns import UNIT, Contender, percent_more, processor_times, producing
from semel_local import ProcessCluster
from semel_local.layout import Role

_RULES = {"authorizer": "acls", "super_users": "User:admin"}
_ALLOWED = [
    AclBinding(
        resource_type=resource,
        resource_name="*",
        principal="User:bench",
        operation=AclOperation.ALL,
    )
    for resource in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID)
]


async def security() -> list[Figure]:
    """Measure each once."""
    async with AsyncExitStack() as stack:
        contenders = [
            await stack.enter_async_context(contender)
            for contender in (
                _plain(),
                _with_certificates(),
                _with_tokens("TLS, tokens", {}),
                _with_tokens("TLS, tokens, rules", _RULES),
            )
        ]
        used_ms = await processor_times(contenders)
    plain, *others = used_ms
    return [
        *(Figure(name=name, value=median(rounds), unit=UNIT) for name, rounds in used_ms.items()),
        *(
            Figure(
                name=f"{name}: more", value=percent_more(used_ms[name], used_ms[plain]), unit="%"
            )
            for name in others
        ),
    ]


@asynccontextmanager
async def _plain() -> AsyncIterator[Contender]:
    with tempfile.TemporaryDirectory() as folder:
        async with ProcessCluster(Path(folder)) as cluster, _work("plain", cluster, None) as work:
            yield work


@asynccontextmanager
async def _with_certificates() -> AsyncIterator[Contender]:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ProcessCluster(Path(folder), tls=True) as cluster,
            _work("TLS", cluster, cluster.security) as work,
        ):
            yield work


@asynccontextmanager
async def _with_tokens(name: str, rules: Mapping[str, str]) -> AsyncIterator[Contender]:
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as folder:
        identities = Identities.make(Path(files))
        settings = {role: {**identities.settings(), **rules} for role in Role}
        admin, user = identities.user("admin"), identities.user("bench")
        async with ProcessCluster(Path(folder), security=admin, settings=settings) as cluster:
            if rules:
                async with SemelClient(cluster.bootstrap, security=admin) as client:
                    await client.admin().access.create_acls(_ALLOWED)
            async with _work(name, cluster, user) as work:
                yield work


@asynccontextmanager
async def _work(
    name: str, cluster: ProcessCluster, security: Security | None
) -> AsyncIterator[Contender]:
    pids = tuple(cluster.pids().values())
    async with (
        SemelClient(cluster.bootstrap, security=security) as client,
        producing(name, client, pids) as contender,
    ):
        yield contender

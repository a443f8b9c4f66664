"""The cluster of real processes that is attacked: TLS, tokens, access rules, producer tokens."""

import json
import resource
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from joserfc.jwk import KeySet

from aiosemel import AclBinding, AclOperation, PatternType, ResourceType, SemelClient
from hostile.callers import AUDIENCE, ISSUER, Caller, Issuer
from semel_local import ProcessCluster
from semel_local.certificates import LocalCertificates
from semel_local.errors import ServiceFailedError
from semel_local.layout import Role
from semel_local.metrics import MetricsPorts
from semel_local.process import Ended, tail

SERVICES = "services"
"""The name in the token of the services."""
TOPIC = "writer-topic"
"""A topic of the writer, with two partitions."""
POLITE_TOPIC = "polite-topic"
MEMORY_MAX_BYTES = 4 << 30


class Target(NamedTuple):
    """One service that is attacked."""

    name: str
    address: str


class Stage:
    """A cluster that runs, and the names and addresses that attackers need."""

    def __init__(
        self, folder: Path, cluster: ProcessCluster, issuer: Issuer, metrics: MetricsPorts
    ) -> None:
        self._metrics = metrics
        self.folder = folder
        self.cluster = cluster
        self.issuer = issuer
        self.ended: list[str] = []
        """Services that ended by themselves."""

    @property
    def bootstrap(self) -> str:
        """The address of coordinator 0."""
        return self.cluster.bootstrap

    def target(self, role: Role) -> Target:
        """Return the first instance of a role."""
        return Target(f"{role}-0", self.cluster.address(f"{role}-0"))

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return one service of each role."""
        return tuple(self.target(role) for role in Role)

    def metrics_address(self, name: str) -> tuple[str, int]:
        """Return host and port of the metrics endpoint of a service."""
        parts = urlsplit(self._metrics.url(name))
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def client(self, caller: Caller) -> SemelClient:
        """Return a client of the SDK."""
        return SemelClient(self.bootstrap, security=self.issuer.security(caller))

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context of sockets."""
        return ssl.create_default_context(cafile=self.issuer.ca)

    def log_sizes(self) -> dict[str, int]:
        """Return how long each service's log is, in bytes."""
        return {name: self.cluster.log_path(name).stat().st_size for name in self.cluster.names}

    def tracebacks(self, since: dict[str, int]) -> list[str]:
        """Return the services whose logs have a traceback since then."""
        found = []
        for name, start in since.items():
            with self.cluster.log_path(name).open("rb") as file:
                file.seek(start)
                if b"Traceback (most recent call last)" in file.read():
                    found.append(f"{name} logged a traceback: {tail(self.cluster.log_path(name))}")
        return found

    async def revive(self) -> None:
        """Start the services that have ended."""
        for name in self.cluster.names:
            if self.cluster.pid(name) is None:
                await self.cluster.start(name)
        self.bound_memory()

    def bound_memory(self) -> None:
        """Let a service that an attack fills end before the machine does."""
        for pid in self.cluster.pids().values():
            resource.prlimit(pid, resource.RLIMIT_DATA, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))


@asynccontextmanager
async def opened(
    folder: Path, settings: dict[str, str | int] | None = None
) -> AsyncIterator[Stage]:
    """Run a cluster with one service of each kind, its rules and its topics."""
    certificates = LocalCertificates(folder / "tls")
    certificates.make()
    issuer = Issuer(certificates.ca)
    common = _settings(certificates, issuer) | (settings or {})
    ended: list[str] = []
    metrics = MetricsPorts()

    def note(end: Ended) -> None:
        ended.append(str(end))

    cluster = ProcessCluster(
        folder / "cluster",
        security=issuer.security(Caller.ADMINISTRATOR),
        settings=dict.fromkeys(Role, common),
        on_ended=note,
        start_options=metrics.start_options,
    )
    try:
        async with cluster:
            stage = Stage(folder, cluster, issuer, metrics)
            stage.ended = ended
            stage.bound_memory()
            await _prepare(stage)
            yield stage
    except BaseExceptionGroup as group:
        first = group.subgroup(ServiceFailedError)
        raise first or group from None


def _settings(certificates: LocalCertificates, issuer: Issuer) -> dict[str, str | int]:
    tls = certificates.folder
    keys = tls / "keys.json"
    keys.write_text(json.dumps(KeySet([issuer.key]).as_dict(private=False)))
    token, producer_secrets = tls / "token", tls / "producer-secrets"
    for path, text in ((token, issuer.token(SERVICES)), (producer_secrets, secrets.token_hex(32))):
        path.touch(mode=0o600)
        path.write_text(f"{text}\n")
    return {
        **certificates.settings(),
        "listener_security_protocol_map": "default:SASL_SSL",
        "ssl_client_auth": "none",
        "sasl_oauthbearer_jwks_endpoint_url": keys.as_uri(),
        "sasl_oauthbearer_expected_issuer": ISSUER,
        "sasl_oauthbearer_expected_audience": AUDIENCE,
        "sasl_oauthbearer_token_location": str(token),
        "cluster_principals": f"User:{SERVICES}",
        "authorizer": "acls",
        "super_users": f"User:{Caller.ADMINISTRATOR}",
        "producer_token_secrets_file": str(producer_secrets),
    }


async def _prepare(stage: Stage) -> None:
    async with stage.client(Caller.ADMINISTRATOR) as client:
        admin = client.admin()
        for topic in (TOPIC, POLITE_TOPIC):
            await admin.create_topic(topic, partitions=2)
        await admin.access.create_acls(
            [rule for caller in (Caller.WRITER, Caller.POLITE) for rule in _rules(caller)]
        )


def _rules(caller: Caller) -> list[AclBinding]:
    may = {
        ResourceType.TOPIC: (AclOperation.READ, AclOperation.WRITE),
        ResourceType.GROUP: (AclOperation.READ,),
        ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE,),
    }
    return [
        AclBinding(
            resource_type=resource,
            resource_name=caller.value,
            pattern_type=PatternType.PREFIXED,
            principal=f"User:{caller}",
            operation=operation,
        )
        for resource, operations in may.items()
        for operation in operations
    ]

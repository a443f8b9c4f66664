"""What security costs: the same transactions without any, and with more of it each time, by turns.

Plain text; TLS with certificates of both sides; TLS with tokens; the same with access rules.
"""

import json
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from aiosemel import Security, SemelClient
from aiosemel.access import AclBinding, AclOperation, ResourceType
from bench.measure import Figure
from bench.turns import UNIT, Contender, processor_times, producing
from semel_local import ProcessCluster
from semel_local.certificates import LocalCertificates
from semel_local.layout import Role

ISSUER, AUDIENCE = "https://issuer.example", "semel"
TOKEN_LIFE_S = 3_600
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
    plain, *others = used_ms.items()
    return [
        *(Figure(name=name, value=value, unit=UNIT) for name, value in used_ms.items()),
        *(
            Figure(name=f"{name}: more", value=100 * (value / plain[1] - 1), unit="%")
            for name, value in others
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
        secrets = _Secrets.make(Path(files))
        settings = {role: {**secrets.settings(), **rules} for role in Role}
        admin, user = secrets.user("admin"), secrets.user("bench")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secrets:
    """Certificates of the services, and who issues tokens to them and to clients."""

    folder: Path
    certificates: LocalCertificates
    signer: ECKey

    @classmethod
    def make(cls, folder: Path) -> "_Secrets":
        """Put them into a folder."""
        certificates = LocalCertificates(folder)
        certificates.make()
        signer = ECKey.generate_key("P-256", {"kid": "key", "use": "sig"})
        made = cls(folder=folder, certificates=certificates, signer=signer)
        keys = KeySet([signer]).as_dict(private=False)
        (folder / "keys.json").write_text(json.dumps(keys))
        (folder / "token").write_text(made._token("services"))
        return made

    def settings(self) -> dict[str, str]:
        """Return what services serve with, and call one another with."""
        return {
            **self.certificates.settings(),
            "listener_security_protocol_map": "default:SASL_SSL",
            "ssl_client_auth": "none",
            "sasl_oauthbearer_jwks_endpoint_url": (self.folder / "keys.json").as_uri(),
            "sasl_oauthbearer_expected_issuer": ISSUER,
            "sasl_oauthbearer_expected_audience": AUDIENCE,
            "sasl_oauthbearer_token_location": str(self.folder / "token"),
            "cluster_principals": "User:services",
        }

    def user(self, name: str) -> Security:
        """Return what somebody connects with."""
        return Security(ssl_ca_location=self.certificates.ca, token=self._token(name))

    def _token(self, name: str) -> str:
        good_until = int(time.time()) + TOKEN_LIFE_S
        claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": good_until}
        return jwt.encode({"alg": "ES256", "kid": "key"}, claims, self.signer)

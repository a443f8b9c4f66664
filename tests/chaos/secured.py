"""TLS and tokens of a run: clients show tokens that soon expire, services show certificates."""

import json
import time
from pathlib import Path

from security_harness import AUDIENCE, ISSUER, Authority, Issuer

from semel_common.wire.security import Security
from semel_local.layout import Role

CLIENTS = "default"
TOKEN_LIFE_S = 4
RENEWED_BEFORE_S = 2


class Secured:
    """Certificates and keys in a folder."""

    def __init__(self, folder: Path) -> None:
        """Make them."""
        self._authority = Authority(folder)
        self._issuer = Issuer(folder / "keys.json")
        self._files = self._authority.server("services")
        self._token = ""
        self._good_until = 0.0
        self.tokens: list[str] = []
        """All that were issued."""

    @property
    def settings(self) -> dict[str, str | int]:
        """Return what each service gets."""
        protocols = {role.value: "SSL" for role in Role} | {CLIENTS: "SASL_SSL"}
        return {
            "listener_security_protocol_map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
            "ssl_certificate_location": str(self._files.certificate),
            "ssl_key_location": str(self._files.key),
            "ssl_ca_location": str(self._authority.ca),
            "ssl_client_auth": "required",
            "listener_name": json.dumps({CLIENTS: {"ssl_client_auth": "none"}}),
            "sasl_oauthbearer_jwks_endpoint_url": f"file://{self._issuer.path}",
            "sasl_oauthbearer_expected_issuer": ISSUER,
            "sasl_oauthbearer_expected_audience": AUDIENCE,
            "sasl_oauthbearer_clock_skew_seconds": 0,
            "cluster_principals": "User:localhost",
        }

    @property
    def client(self) -> Security:
        """Return what a client connects with."""
        return Security(ssl_ca_location=self._authority.ca, token=self._fresh_token)

    @property
    def nobody(self) -> Security:
        """Return what one connects with who has no token."""
        return Security(ssl_ca_location=self._authority.ca)

    def exchange_certificates(self) -> None:
        """Give the services another certificate, while they run."""
        self._authority.server("services")

    def private_keys(self) -> list[str]:
        """Return the secrets of the services, line by line."""
        return self._files.key.read_text().splitlines()[1:-1]

    def _fresh_token(self) -> str:
        now = time.time()
        if now > self._good_until - RENEWED_BEFORE_S:
            self._token = self._issuer.token(lives_s=TOKEN_LIFE_S)
            self._good_until = now + TOKEN_LIFE_S
            self.tokens.append(self._token)
        return self._token

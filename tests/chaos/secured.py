"""TLS and tokens of a run: clients show tokens that soon expire, services show certificates."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import trustme
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from semel_common.wire.client_security import Security
from semel_local.layout import HOST, Role

CLIENTS = "default"
ISSUER, AUDIENCE = "https://issuer.example", "semel"
TOKEN_LIFE_S = 4
RENEWED_BEFORE_S = 2


class Secured:
    """Certificates and keys in a folder."""

    def __init__(self, folder: Path, options: Mapping[str, str] | None = None) -> None:
        """Make them. ``options`` are settings that services get beside those of security."""
        folder.mkdir()
        self._options = options or {}
        self._authority = trustme.CA()
        self._ca = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self._ca)
        self._certificate, self._key = folder / "services.pem", folder / "services.key"
        self.exchange_certificates()
        self._signer = ECKey.generate_key("P-256", {"kid": "key", "use": "sig"})
        self._key_set = folder / "keys.json"
        self._key_set.write_text(json.dumps(KeySet([self._signer]).as_dict(private=False)))
        self._token = ""
        self._good_until = 0.0
        self.tokens: list[str] = []
        """All that were issued."""

    @property
    def settings(self) -> dict[str, str | int]:
        """Return the settings of each service."""
        protocols = {role.value: "SSL" for role in Role} | {CLIENTS: "SASL_SSL"}
        return {
            "listener_security_protocol_map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
            "ssl_certificate_location": str(self._certificate),
            "ssl_key_location": str(self._key),
            "ssl_ca_location": str(self._ca),
            "ssl_client_auth": "required",
            "listener_name": json.dumps({CLIENTS: {"ssl_client_auth": "none"}}),
            "sasl_oauthbearer_jwks_endpoint_url": f"file://{self._key_set}",
            "sasl_oauthbearer_expected_issuer": ISSUER,
            "sasl_oauthbearer_expected_audience": AUDIENCE,
            "sasl_oauthbearer_clock_skew_seconds": 0,
            "cluster_principals": "User:localhost",
            **self._options,
        }

    @property
    def client(self) -> Security:
        """Return the credentials of a client."""
        return Security(ssl_ca_location=self._ca, token=self._fresh_token)

    def user(self, name: str) -> Security:
        """Return the credentials of a named user, with a token that is valid for a minute."""
        return Security(ssl_ca_location=self._ca, token=self._issue(name, int(time.time()) + 60))

    @property
    def nobody(self) -> Security:
        """Return the credentials of a caller without a token."""
        return Security(ssl_ca_location=self._ca)

    def exchange_certificates(self) -> None:
        """Give the services another certificate, while they run."""
        issued = self._authority.issue_cert("localhost", HOST)
        self._certificate.write_bytes(issued.cert_chain_pems[0].bytes())
        issued.private_key_pem.write_to_path(self._key)
        self._key.chmod(0o600)

    def private_keys(self) -> list[str]:
        """Return the secrets of the services, line by line."""
        return self._key.read_text().splitlines()[1:-1]

    def _fresh_token(self) -> str:
        now = time.time()
        if now > self._good_until - RENEWED_BEFORE_S:
            self._good_until = int(now) + TOKEN_LIFE_S
            self._token = self._issue("app", int(self._good_until))
            self.tokens.append(self._token)
        return self._token

    def _issue(self, name: str, good_until: int) -> str:
        claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": good_until}
        return jwt.encode({"alg": "ES256", "kid": "key"}, claims, self._signer)

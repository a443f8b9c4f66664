"""Certificates and tokens for clusters that are measured with authentication."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from aiosemel import Security
from semel_local.certificates import LocalCertificates

ISSUER, AUDIENCE = "https://issuer.example", "semel"
TOKEN_LIFE_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """Certificates of the services, and who issues tokens to them and to clients."""

    folder: Path
    certificates: LocalCertificates
    signer: ECKey

    @classmethod
    def make(cls, folder: Path) -> "Identities":
        """Put them into a folder."""
        certificates = LocalCertificates(folder)
        certificates.make()
        signer = ECKey.generate_key("P-256", {"kid": "key", "use": "sig"})
        made = cls(folder=folder, certificates=certificates, signer=signer)
        keys = KeySet([signer]).as_dict(private=False)
        (folder / "keys.json").write_text(json.dumps(keys))
        (folder / "token").write_text(made.token("services"))
        (folder / "token").chmod(0o600)
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
        """Return the connection settings of a user."""
        return Security(ssl_ca_location=self.certificates.ca, token=self.token(name))

    def token(self, name: str) -> str:
        """Return what proves a name."""
        good_until = int(time.time()) + TOKEN_LIFE_S
        claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": good_until}
        return jwt.encode({"alg": "ES256", "kid": "key"}, claims, self.signer)

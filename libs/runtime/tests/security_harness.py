"""A certificate authority and an issuer of tokens, right ones and wrong ones."""

import asyncio
import hmac
import json
import ssl
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from joserfc import jwt
from joserfc.jwk import ECKey, Key, KeySet

from semel_common.wire.client_security import Security
from semel_common.wire.frames.length_prefix import SIGN_OF_LIFE
from semel_runtime.authentication.jwks import KeysInFile
from semel_runtime.authentication.listener_tls import ServerTls, TlsFiles
from semel_runtime.authentication.token_check import TokenOptions, TokenVerifier

ISSUER = "https://issuer.example"
AUDIENCE = "semel"
OPTIONS = TokenOptions(
    issuer=ISSUER, audiences=(AUDIENCE, "other-name"), algorithms=("ES256",), clock_skew_s=30
)
HOUR_S = 3_600


class Authority:
    """A CA, with its certificates in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA(organization_name="test")
        self.ca = folder / "ca.pem"
        self.give_ca()

    def give_ca(self) -> None:
        """Put the certificate of the CA into its file."""
        self._ca.cert_pem.write_to_path(self.ca)

    def server(self, name: str = "server") -> TlsFiles:
        """Make a certificate for this machine; clients need one of this CA."""
        return self._write(name, self._ca.issue_cert("127.0.0.1", "localhost"))

    def client(self, name: str = "app", *, expired: bool = False) -> Security:
        """Make a certificate for a client, called ``semel://name``."""
        ends = datetime.now(UTC) - timedelta(hours=1) if expired else None
        begins = datetime.now(UTC) - timedelta(hours=2)
        certificate = self._ca.issue_cert(
            common_name=f"{name} by another name", not_before=begins, not_after=ends
        )
        return self._security(self._write(name, certificate))

    def named(self, *identities: str, common_name: str | None = None) -> Security:
        """Make a certificate for a client with names of other kinds."""
        certificate = self._ca.issue_cert(*identities, common_name=common_name)
        return self._security(self._write("named", certificate))

    def _write(self, name: str, certificate: trustme.LeafCert) -> TlsFiles:
        chain, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        chain.write_bytes(
            b"".join(cert_chain_pem.bytes() for cert_chain_pem in certificate.cert_chain_pems)
        )
        certificate.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        return TlsFiles(certificate=chain, key=key, client_ca=self.ca)

    def _security(self, files: TlsFiles) -> Security:
        return Security(
            ssl_ca_location=self.ca,
            ssl_certificate_location=files.certificate,
            ssl_key_location=files.key,
        )


def server_tls(files: TlsFiles, *, asks_clients: bool) -> ServerTls:
    client_ca = files.client_ca if asks_clients else None
    return ServerTls(TlsFiles(certificate=files.certificate, key=files.key, client_ca=client_ca))


async def takes(port: int, client: Security) -> bool:
    """Whether a socket for frames lets this client in: it waits for a ticket then."""
    context = ssl.create_default_context(cafile=client.ssl_ca_location)
    if client.ssl_certificate_location is not None:
        context.load_cert_chain(client.ssl_certificate_location, client.ssl_key_location)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(SIGN_OF_LIFE)
    try:
        return await reader.read(len(SIGN_OF_LIFE)) == SIGN_OF_LIFE
    except OSError:
        return False
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def new_key(key_id: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": key_id, "alg": "ES256", "use": "sig"})


@dataclass
class Issuer:
    """The issuer of tokens."""

    path: Path
    """Of its key set."""
    key: ECKey = field(default_factory=lambda: new_key("first"))

    def __post_init__(self) -> None:
        self.publish(self.key)

    def publish(self, *keys: Key) -> None:
        self.path.write_text(json.dumps(KeySet(list(keys)).as_dict(private=False)))

    def verifier(self, options: TokenOptions = OPTIONS) -> TokenVerifier:
        return TokenVerifier(KeysInFile(self.path), options)

    def token(
        self,
        *,
        subject: str | None = "app",
        audience: str | list[str] | None = AUDIENCE,
        issuer: str | None = ISSUER,
        lives_s: float | None = HOUR_S,
        begins_s: float = -HOUR_S,
        key: Key | None = None,
    ) -> str:
        """Issue a token; None leaves a claim out."""
        now = int(time.time())
        claims = {
            "sub": subject,
            "aud": audience,
            "iss": issuer,
            "exp": None if lives_s is None else now + int(lives_s),
            "nbf": now + int(begins_s),
        }
        signer = key or self.key
        header = {"alg": "ES256", "kid": signer.kid or ""}
        given = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(header, given, signer)

    def unsigned(self) -> str:
        """Issue a token with the algorithm ``none``."""
        head, body, _ = self.token().split(".")
        del head
        return f"{_base64({'alg': 'none', 'kid': self.key.kid})}.{body}."

    def symmetric(self) -> str:
        """Sign with the public key, as if it were a shared secret."""
        _, body, _ = self.token().split(".")
        signed = f"{_base64({'alg': 'HS256', 'kid': self.key.kid})}.{body}"
        signature = hmac.digest(self.key.as_pem(private=False), signed.encode(), "sha256")
        return f"{signed}.{urlsafe_b64encode(signature).decode().rstrip('=')}"

    def tampered(self) -> str:
        """Change the subject of a token that was signed."""
        head, body, signature = self.token().split(".")
        claims = json.loads(_unbase64(body)) | {"sub": "admin"}
        return f"{head}.{_base64(claims)}.{signature}"


def _base64(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))

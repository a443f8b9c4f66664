"""Settings that all services share, read from the environment (SEMEL_…) or the command line.

Names are Kafka's where Kafka has the option. ``docs/reference/configuration.md`` is made from these
models.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from semel_common.addresses import split_address
from semel_common.wire.messages.request_bounds import MESSAGE_SIZE_MAX_BYTES
from semel_runtime.access.acls import EVERYBODY, USER
from semel_runtime.access.quotas import QuotaTimes
from semel_runtime.authentication.listener_security import (
    ClientAuth,
    ListenerOptions,
    ListenerOverride,
    SecurityProtocol,
    check_algorithms,
    check_key_url,
    names_in,
    parse_protocols,
)
from semel_runtime.cluster.controller_link import LinkOptions
from semel_runtime.cluster.metadata_image import Listener
from semel_runtime.journal.engine_choice import is_folder
from semel_runtime.journal.postgres.options import PostgresOptions, Replication
from semel_runtime.journal.sqlite.options import SqliteOptions
from semel_runtime.runner.runner_options import RunnerOptions
from semel_runtime.server.limits.server_limits import ServerLimits

_OFF = "off"
_INT32_MAX = (1 << 31) - 1

Milliseconds = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1, le=_INT32_MAX)]


def telemetry_environment() -> Mapping[str, str]:
    """Return the environment, of which OpenTelemetry's own variables (OTEL_…) set up tracing."""
    return os.environ


def parse_listeners(text: str) -> tuple[Listener, ...]:
    """Read ``NAME://HOST:PORT[,NAME://HOST:PORT…]``. Raises ValueError naming the part at fault."""
    listeners = tuple(_parse_listener(part.strip()) for part in text.split(",") if part.strip())
    names = [listener.name for listener in listeners]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"{text!r} must name at least one listener, and each once")
    return listeners


def _parse_listener(part: str) -> Listener:
    name, _, address = part.partition("://")
    if not name or not address:
        raise ValueError(f"{part!r} is not of the form NAME://HOST:PORT")
    host, port = split_address(address, port_min=0)
    return Listener(name=name, host=host, port=port)


def _checked_listeners(text: str) -> str:
    parse_listeners(text)
    return text


def _checked_named_listeners(text: str) -> str:
    return _checked_listeners(text) if text else text


def _checked_frame_listeners(text: str) -> str:
    return text if text == _OFF else _checked_named_listeners(text)


def _checked_protocols(text: str) -> str:
    parse_protocols(text)
    return text


def _checked_address(text: str) -> str:
    if text:
        _parse_address(text)
    return text


def _parse_address(text: str) -> Listener:
    return _parse_listener(f"address://{text}")


def _principals(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(";") if part.strip())


def _checked_principals(text: str) -> str:
    for principal in _principals(text):
        if not principal.startswith(USER) or principal in (USER, EVERYBODY):
            raise ValueError(f"{principal!r} is not of the form {USER}name")
    return text


Listeners = Annotated[str, AfterValidator(_checked_listeners)]
NamedListeners = Annotated[str, AfterValidator(_checked_named_listeners)]
Address = Annotated[str, AfterValidator(_checked_address)]


class ServiceSettings(BaseSettings):
    """What every service needs to know."""

    model_config = SettingsConfigDict(env_prefix="SEMEL_", frozen=True, extra="forbid")

    data_dir: Path
    """Folder of this instance's journal; made if it is not there. Never shared by two instances."""
    journal_url: Annotated[str, Field(repr=False)] = ""
    """Where the journal is instead, as postgresql://user:password@host:port/database, the same for
    all instances: each has a schema of its own. With a password in it, it belongs in the
    environment, not on the command line. Empty: in data_dir, in SQLite."""
    journal_replication: Replication = "required"
    """`required` refuses a PostgreSQL that does not replicate each commit; `wanted` only warns."""
    journal_open_timeout_ms: Annotated[int, Field(ge=0)] = 60_000
    """How long to wait at start for a PostgreSQL that cannot be reached or is not yet a primary, as
    during a fail-over, before the service ends, in milliseconds."""
    instance_id: Annotated[int, Field(ge=0, le=9_999)] = 0
    """Number of this instance within its service; the same at every start."""
    listeners: Listeners = "default://127.0.0.1:0"
    """Addresses to bind, as NAME://HOST:PORT, separated by commas. Port 0: any free port."""
    advertised_listeners: NamedListeners = ""
    """Addresses that the service announces, in the same form; if not named here, the one bound."""
    frame_listeners: Annotated[str, AfterValidator(_checked_frame_listeners)] = ""
    """Addresses to bind for frames, in the same form; a listener that is not named here has any
    free port of its host. `off`: frames go over gRPC."""
    advertised_frame_listeners: NamedListeners = ""
    """Addresses to which clients are sent for frames, in the same form; if not named here, the port
    bound, at the host that the client knows."""
    listener_security_protocol_map: Annotated[str, AfterValidator(_checked_protocols)] = ""
    """How each listener is secured, as NAME:PROTOCOL, separated by commas: PLAINTEXT, SSL (TLS, and
    client certificates if ssl_client_auth is `required`), SASL_SSL (TLS, and bearer tokens) or
    SASL_PLAINTEXT. Not named here: PLAINTEXT."""
    ssl_certificate_location: Path | None = None
    """This service's certificate chain, a PEM file; its own proof towards other services too. Files
    are read again when they change."""
    ssl_key_location: Path | None = None
    """The private key of that certificate, a PEM file that is not encrypted."""
    ssl_ca_location: Path | None = None
    """CA certificates that vouch for clients and for other services, a PEM file."""
    ssl_client_auth: ClientAuth = "none"
    """Whether clients of a listener with TLS must show a certificate: `none` or `required`."""
    listener_name: dict[str, ListenerOverride] = {}
    """Settings of single listeners that differ from the others, as JSON: `{"NAME":
    {"ssl_client_auth": "required", …}}`, with ssl_certificate_location, ssl_key_location,
    ssl_ca_location and ssl_client_auth."""
    sasl_oauthbearer_jwks_endpoint_url: str = ""
    """The keys that sign tokens, a JSON Web Key Set: its address, https:// or file://."""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Count = 3_600_000
    """How often the service reads the keys again, in milliseconds; also when a token names an
    unknown key, at most every 10 seconds."""
    sasl_oauthbearer_expected_issuer: str = ""
    """The issuer of tokens: the value of their claim `iss`."""
    sasl_oauthbearer_expected_audience: str = ""
    """The audiences of tokens (claim `aud`), separated by commas; one of them is enough."""
    sasl_oauthbearer_sub_claim_name: str = "sub"
    """The claim of a token whose value is the name of its principal."""
    sasl_oauthbearer_clock_skew_seconds: Annotated[int, Field(ge=0, le=3_600)] = 30
    """How far the clocks of issuers may be off, in seconds."""
    sasl_oauthbearer_algorithms: str = "RS256,PS256,ES256,Ed25519"
    """Algorithms with which tokens may be signed, separated by commas; asymmetric ones only."""
    sasl_oauthbearer_token_location: Path | None = None
    """A file with this service's own token, which it shows to other services whose listener asks
    for one; read again when it changes."""
    cluster_principals: str = ""
    """The principals of this cluster's own services, as `User:name`, separated by semicolons."""
    insecure_listeners: str = ""
    """Names of listeners, separated by commas, that other machines may reach without TLS or without
    authentication. Every program that reaches one can read and change all data."""
    inter_broker_listener_name: str = "default"
    """Name of the listener through which services reach one another."""
    health_listener: Address = ""
    """Address to bind for health alone, as HOST:PORT, never encrypted: the probes of Kubernetes
    know no TLS. Health is on the other listeners too."""
    controller: Address = ""
    """Address host:port of coordinator 0, on the listener for services."""
    registration_interval_ms: Milliseconds = 5_000
    """How often an instance tells the controller that it is there, in milliseconds."""
    metadata_max_wait_ms: Milliseconds = 10_000
    """How long one question for newer metadata waits, in milliseconds."""
    request_timeout_ms: Annotated[int, Field(gt=0)] = 5_000
    """How long a call to another service may take, in milliseconds."""
    message_size_max_bytes: Annotated[int, Field(ge=1 << 20)] = MESSAGE_SIZE_MAX_BYTES
    """The largest accepted request, in bytes. 16 of them at once take up to 1 GiB of memory, with
    their objects; it must be larger than every max.message.bytes."""
    stream_in_flight_max_bytes: Bytes = 64 << 20
    """Bytes of unanswered requests on one frame stream, past which it is not read."""
    in_flight_max_bytes: Annotated[int, Field(ge=8 << 20)] = 256 << 20
    """The same for all frame streams together, in bytes, with large messages that are still
    arriving, counted with their announced size. Past a caller's share, its streams are not read."""
    requests_in_flight_max: Annotated[int, Field(gt=0)] = 32_000
    """Unanswered requests of all callers, unary calls and calls that wait included. Past a caller's
    share, its streams are not read, and its unary calls are refused."""
    streams_max: Annotated[int, Field(gt=0)] = 2_000
    """Frame streams open at once; one more is refused, and its client makes unary calls."""
    principal_share_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """How much of in_flight_max_bytes, requests_in_flight_max and streams_max one principal may
    take, in percent; without authentication, one address."""
    cluster_reserve_percent: Annotated[int, Field(ge=0, le=50)] = 10
    """How much of the same only cluster_principals may take, in percent."""
    connections_max_idle_ms: Annotated[int, Field(ge=1_000)] = 600_000
    """How long a frame stream without a request, or a gRPC connection without a call, stays, in
    milliseconds; signs of life do not count. The SDK connects again when it has a request."""
    handshake_timeout_ms: Annotated[int, Field(ge=100)] = 10_000
    """How long a new connection may take for TLS and its proof of identity, in milliseconds."""
    visitors_max: Annotated[int, Field(gt=0)] = 2_000
    """Connections for frames that have not shown a ticket; one more ends the oldest connection of
    the address that has most."""
    visitors_per_address_max: Annotated[int, Field(gt=0)] = 200
    """The same for one address; one more ends the oldest of this address."""
    grpc_connections_max: Annotated[int, Field(gt=0)] = 4_000
    """gRPC connections of one listener, of all addresses together; one more is closed at once."""
    grpc_connections_per_address_max: Annotated[int, Field(gt=0)] = 2_000
    """gRPC connections of one address to all listeners; the newest are ended within a second."""
    long_poll_max_ms: Annotated[int, Field(ge=1_000, le=300_000)] = 60_000
    """How long a Fetch or a Metadata call may wait, whatever its max_wait_ms says, in
    milliseconds."""
    journal_snapshot_records_min: Count = 50_000
    """Records after the last snapshot of the journal, at the least, before another one is taken."""
    authorizer: Literal["acls", "off"] = "off"
    """`acls`: callers may do what access rules allow, and every listener that services use must
    authenticate; `off`: every caller may do everything, as in Kafka without an authorizer."""
    super_users: Annotated[str, AfterValidator(_checked_principals)] = ""
    """Principals that may do everything, as `User:name`, separated by semicolons."""
    allow_everyone_if_no_acl_found: bool = False
    """Whether all users may do everything to a resource without an access rule."""
    producer_token_secrets_file: Path | None = None
    """File with the secret of producer tokens, the same at every service; during a change two, each
    in a line: the first makes tokens, both are accepted. None: producer ids need no token."""
    quota_window_ms: Annotated[int, Field(gt=0, le=3_600_000)] = 1_000
    """The burst of a client quota: a client may use the quota of this time at once, in
    milliseconds."""
    quota_debt_max_ms: Annotated[int, Field(gt=0, le=3_600_000)] = 10_000
    """The longest wait that a client over its quota may owe, in milliseconds; past it, the service
    refuses its requests. An answer asks for a wait of twice this time, at most."""
    disk_reserve_bytes: Bytes = 64 << 20
    """Free bytes on the disk below which the instance refuses new data of users, in bytes. Ends of
    transactions, deletions and reads go on; `semel doctor` and the log report it."""
    shutdown_drain_ms: Milliseconds = 0
    """How long to serve on after SIGTERM while health says NOT_SERVING, in milliseconds."""
    shutdown_grace_ms: Milliseconds = 5_000
    """How long requests in flight may still take at shutdown, in milliseconds."""
    metrics_listener: Address = ""
    """Address to bind for Prometheus, as HOST:PORT; empty: there are no metrics. It does not
    authenticate: let only machines reach it that may know the names of topics and groups."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is logged."""
    log_format: Literal["console", "json"] = "console"
    """The format of a line of the log: for people, or for programs."""

    @model_validator(mode="after")
    def _check_listeners(self) -> Self:
        bound = {listener.name for listener in parse_listeners(self.listeners)}
        for option, text in (
            ("advertised_listeners", self.advertised_listeners),
            ("frame_listeners", "" if self.frame_listeners == _OFF else self.frame_listeners),
            ("advertised_frame_listeners", self.advertised_frame_listeners),
        ):
            for name in _by_name(text):
                if name not in bound:
                    raise ValueError(f"{option} names {name!r}, listeners does not")
        if self.inter_broker_listener_name not in bound:
            raise ValueError(
                f"inter_broker_listener_name is {self.inter_broker_listener_name!r},"
                " which is not in listeners"
            )
        return self

    @model_validator(mode="after")
    def _check_journal(self) -> Self:
        # Never shown: what was meant to be a URL may have a password in it.
        if self.journal_url and is_folder(self.journal_url):
            raise ValueError(
                "journal_url is no URL: write postgresql://user:password@host:port/database,"
                " or leave it empty for a journal in data_dir"
            )
        return self

    @model_validator(mode="after")
    def _check_security(self) -> Self:
        bound = parse_listeners(self.listeners)
        protocols = parse_protocols(self.listener_security_protocol_map)
        insecure = names_in(self.insecure_listeners, ",")
        for option, given in (
            ("listener_security_protocol_map", protocols),
            ("listener_name", self.listener_name),
            ("insecure_listeners", insecure),
        ):
            for name in given:
                if name not in {listener.name for listener in bound}:
                    raise ValueError(f"{option} names {name!r}, listeners does not")
        frames = {} if self.frame_listeners == _OFF else _by_name(self.frame_listeners)
        for bound_listener in (*bound, *frames.values()):
            self.security_of(bound_listener.name).check(
                bound_listener, insecure=bound_listener.name in insecure
            )
        return self

    @model_validator(mode="after")
    def _check_tokens(self) -> Self:
        protocols = parse_protocols(self.listener_security_protocol_map)
        if any(protocol.has_tokens for protocol in protocols.values()):
            for option in (
                "sasl_oauthbearer_jwks_endpoint_url",
                "sasl_oauthbearer_expected_issuer",
                "sasl_oauthbearer_expected_audience",
            ):
                if not getattr(self, option):
                    raise ValueError(f"{option} must be set: a listener asks for tokens")
            check_key_url(self.sasl_oauthbearer_jwks_endpoint_url)
        check_algorithms(self.sasl_oauthbearer_algorithms)
        return self

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        share_bytes = self.in_flight_max_bytes * self.principal_share_percent // 100
        if share_bytes < self.message_size_max_bytes:
            raise ValueError(
                f"in_flight_max_bytes ({self.in_flight_max_bytes:,}) leaves each principal"
                f" {share_bytes:,} bytes ({self.principal_share_percent} percent), less than one"
                f" message of message_size_max_bytes ({self.message_size_max_bytes:,}): raise"
                " in_flight_max_bytes"
            )
        return self

    @property
    def authenticates(self) -> bool:
        """Whether any listener authenticates its callers."""
        listeners = parse_listeners(self.listeners)
        return any(self.security_of(listener.name).authenticates for listener in listeners)

    @property
    def services_are_known(self) -> bool:
        """Whether the cluster's own services are told from all others."""
        internal = self.security_of(self.inter_broker_listener_name)
        return internal.authenticates and bool(names_in(self.cluster_principals, ";"))

    def security_of(self, listener: str) -> ListenerOptions:
        """Return how a listener is secured."""
        protocols = parse_protocols(self.listener_security_protocol_map)
        own = self.listener_name.get(listener, ListenerOverride())
        return ListenerOptions(
            protocol=protocols.get(listener, SecurityProtocol.PLAINTEXT),
            ssl_certificate_location=own.ssl_certificate_location or self.ssl_certificate_location,
            ssl_key_location=own.ssl_key_location or self.ssl_key_location,
            ssl_ca_location=own.ssl_ca_location or self.ssl_ca_location,
            ssl_client_auth=own.ssl_client_auth or self.ssl_client_auth,
        )

    @property
    def authorizes(self) -> bool:
        """Whether access rules count."""
        return self.authorizer == "acls"

    def principals_of_super_users(self) -> frozenset[str]:
        """Return the principals that may do everything."""
        return _principals(self.super_users)

    def quota_times(self) -> QuotaTimes:
        """Return for how long a client may go over its quota."""
        return QuotaTimes(window_ms=self.quota_window_ms, debt_max_ms=self.quota_debt_max_ms)

    def server_limits(self) -> ServerLimits:
        """Return the limits of the gRPC server."""
        return ServerLimits(
            message_size_max_bytes=self.message_size_max_bytes,
            stream_in_flight_max_bytes=self.stream_in_flight_max_bytes,
            in_flight_max_bytes=self.in_flight_max_bytes,
            requests_in_flight_max=self.requests_in_flight_max,
            streams_max=self.streams_max,
            principal_share_percent=self.principal_share_percent,
            cluster_reserve_percent=self.cluster_reserve_percent,
            connections_max_idle_ms=self.connections_max_idle_ms,
            handshake_timeout_ms=self.handshake_timeout_ms,
            visitors_max=self.visitors_max,
            visitors_per_address_max=self.visitors_per_address_max,
            grpc_connections_max=self.grpc_connections_max,
            grpc_connections_per_address_max=self.grpc_connections_per_address_max,
            long_poll_max_ms=self.long_poll_max_ms,
        )

    @property
    def journal_location(self) -> str | Path:
        """The folder or the URL of the journal."""
        return self.journal_url or self.data_dir

    def sqlite_options(self) -> SqliteOptions:
        """Return the limits of a journal in a folder."""
        return SqliteOptions(disk_reserve_bytes=self.disk_reserve_bytes)

    def postgres_options(self) -> PostgresOptions:
        """Return the limits of a journal at a URL."""
        return PostgresOptions(
            replication=self.journal_replication, open_timeout_ms=self.journal_open_timeout_ms
        )

    def runner_options(self) -> RunnerOptions:
        """Return the limits of the runner."""
        return RunnerOptions(snapshot_records_min=self.journal_snapshot_records_min)

    def link_options(self) -> LinkOptions:
        """Return how often the controller is called."""
        return LinkOptions(
            registration_interval_ms=self.registration_interval_ms,
            metadata_max_wait_ms=self.metadata_max_wait_ms,
            request_timeout_ms=self.request_timeout_ms,
        )

    def advertised(self, bound: tuple[Listener, ...]) -> tuple[Listener, ...]:
        """Return what to tell others of the listeners that were bound, with their real ports."""
        told = _by_name(self.advertised_listeners)
        return tuple(told.get(listener.name, listener) for listener in bound)

    def metrics_place(self) -> Listener | None:
        """Return what to bind for metrics, if anything."""
        return _parse_address(self.metrics_listener) if self.metrics_listener else None

    def frame_places(self) -> list[tuple[Listener, Listener | None]]:
        """Return what to bind for frames, each with where clients are sent to."""
        if self.frame_listeners == _OFF:
            return []
        named, told = _by_name(self.frame_listeners), _by_name(self.advertised_frame_listeners)
        free = (
            Listener(name=listener.name, host=listener.host, port=0)
            for listener in parse_listeners(self.listeners)
        )
        return [(named.get(each.name, each), told.get(each.name)) for each in free]


def _by_name(text: str) -> dict[str, Listener]:
    return {listener.name: listener for listener in parse_listeners(text)} if text else {}

"""Settings that all services share, read from the environment (SEMEL_…) or the command line.

Names are Kafka's where Kafka has the option. ``docs/configuration.md`` is made from these models.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from semel_runtime.access.acls import EVERYBODY, USER
from semel_runtime.access.quotas import QuotaTimes
from semel_runtime.cluster.image import Listener
from semel_runtime.cluster.link import LinkOptions
from semel_runtime.runner.options import RunnerOptions
from semel_runtime.server.limits import ServerLimits

_PORT_MAX = 65_535
_OFF = "off"
_INT32_MAX = (1 << 31) - 1

Milliseconds = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1, le=_INT32_MAX)]


def parse_listeners(text: str) -> tuple[Listener, ...]:
    """Read ``NAME://HOST:PORT[,NAME://HOST:PORT…]``. Raises ValueError naming the part at fault."""
    listeners = tuple(_parse_listener(part.strip()) for part in text.split(",") if part.strip())
    names = [listener.name for listener in listeners]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"{text!r} must name at least one listener, and each once")
    return listeners


def _parse_listener(part: str) -> Listener:
    name, _, address = part.partition("://")
    host, _, port = address.rpartition(":")
    if not name or not host or not port.isdecimal() or int(port) > _PORT_MAX:
        raise ValueError(f"{part!r} is not of the form NAME://HOST:PORT")
    return Listener(name=name, host=host.strip("[]"), port=int(port))


def _checked_listeners(text: str) -> str:
    parse_listeners(text)
    return text


def _checked_metrics_listener(text: str) -> str:
    if text:
        _parse_metrics_listener(text)
    return text


def _parse_metrics_listener(text: str) -> Listener:
    return _parse_listener(f"metrics://{text}")


def _principals(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(";") if part.strip())


def _checked_principals(text: str) -> str:
    for each in _principals(text):
        if not each.startswith(USER) or each in (USER, EVERYBODY):
            raise ValueError(f"{each!r} is not of the form {USER}name")
    return text


Listeners = Annotated[str, AfterValidator(_checked_listeners)]


class ServiceSettings(BaseSettings):
    """What every service needs to know."""

    model_config = SettingsConfigDict(
        env_prefix="SEMEL_", frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    data_dir: Path
    """Folder of this instance's journal; made if it is not there. Never shared by two instances."""
    instance_id: Annotated[int, Field(ge=0, le=9_999)] = 0
    """Number of this instance within its service; the same at every start."""
    listeners: Listeners = "default://127.0.0.1:0"
    """Addresses to bind, as NAME://HOST:PORT, separated by commas. Port 0: any free port."""
    advertised_listeners: str = ""
    """Addresses that others are told, in the same form; if not named here, the one bound."""
    frame_listeners: str = ""
    """Addresses to bind for frames, in the same form; a listener that is not named here has any
    free port of its host. `off`: frames go over gRPC."""
    advertised_frame_listeners: str = ""
    """Addresses to which clients are sent for frames, in the same form; if not named here, the port
    bound, at the host that the client knows."""
    inter_broker_listener_name: str = "default"
    """Name of the listener through which services reach one another."""
    controller: str = ""
    """Address host:port of coordinator 0, on the listener for services."""
    registration_interval_ms: Milliseconds = 5_000
    """How often an instance tells the controller that it is there, in milliseconds."""
    metadata_max_wait_ms: Milliseconds = 10_000
    """How long one question for newer metadata waits, in milliseconds."""
    request_timeout_ms: Annotated[int, Field(gt=0)] = 5_000
    """How long a call to another service may take, in milliseconds."""
    message_size_max_bytes: Annotated[int, Field(ge=1 << 20)] = 64 << 20
    """The largest gRPC message taken or sent, in bytes."""
    stream_in_flight_max_bytes: Bytes = 64 << 20
    """Bytes of unanswered requests on one frame stream, past which it is not read."""
    streams_max: Annotated[int, Field(gt=0)] = 2_000
    """Frame streams open at once; one more is refused."""
    journal_snapshot_records_min: Count = 50_000
    """Records after the last snapshot of the journal, at the least, before another one is taken."""
    authorizer: Literal["auto", "acls", "off"] = "auto"
    """Who may do what: `acls`: what access rules allow; `off`: everybody everything; `auto`: `acls`
    as soon as a listener authenticates."""
    super_users: Annotated[str, AfterValidator(_checked_principals)] = ""
    """Principals that may do everything, as `User:name`, separated by semicolons."""
    allow_everyone_if_no_acl_found: bool = False
    """Whether everybody may do everything to a resource that no access rule is about."""
    producer_token_secrets_file: Path | None = None
    """File with the secret of producer tokens, the same at every service; during a change two, each
    in a line: the first makes tokens, both are accepted. None: producer ids need no token."""
    quota_window_ms: Annotated[int, Field(gt=0)] = 1_000
    """As much as a client quota gives in this time may be used at once, in milliseconds."""
    quota_debt_max_ms: Annotated[int, Field(gt=0)] = 10_000
    """How far a client may get over its quota, in milliseconds that it would have to wait; past it,
    its requests are refused."""
    disk_reserve_bytes: Bytes = 64 << 20
    """Free bytes on the disk below which nothing new is stored, while all else goes on."""
    shutdown_drain_ms: Milliseconds = 0
    """How long to serve on after SIGTERM while health says NOT_SERVING, in milliseconds."""
    shutdown_grace_ms: Milliseconds = 5_000
    """How long requests in flight may still take at shutdown, in milliseconds."""
    metrics_listener: Annotated[str, AfterValidator(_checked_metrics_listener)] = ""
    """Address to bind for Prometheus, as HOST:PORT; empty: there are no metrics. It asks nobody who
    they are: let only those reach it who may know the names of topics and groups."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is logged."""
    log_format: Literal["console", "json"] = "console"
    """How a line of the log looks: for people, or for programs."""

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

    @property
    def authenticates(self) -> bool:
        """Whether any listener tells who calls."""
        return False

    @property
    def authorizes(self) -> bool:
        """Whether access rules count."""
        return self.authorizer == "acls" or (self.authorizer == "auto" and self.authenticates)

    def principals_of_super_users(self) -> frozenset[str]:
        """Return who may do everything."""
        return _principals(self.super_users)

    def quota_times(self) -> QuotaTimes:
        """Return for how long a client may go over its quota."""
        return QuotaTimes(window_ms=self.quota_window_ms, debt_max_ms=self.quota_debt_max_ms)

    def server_limits(self) -> ServerLimits:
        """Return the limits of the gRPC server."""
        return ServerLimits(
            message_size_max_bytes=self.message_size_max_bytes,
            stream_in_flight_max_bytes=self.stream_in_flight_max_bytes,
            streams_max=self.streams_max,
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
        return _parse_metrics_listener(self.metrics_listener) if self.metrics_listener else None

    def frame_places(self) -> list[tuple[Listener, Listener | None]]:
        """Return what to bind for frames, each with where clients are sent to."""
        if self.frame_listeners == _OFF:
            return []
        named, told = _by_name(self.frame_listeners), _by_name(self.advertised_frame_listeners)
        free = (
            Listener(name=each.name, host=each.host, port=0)
            for each in parse_listeners(self.listeners)
        )
        return [(named.get(each.name, each), told.get(each.name)) for each in free]


def _by_name(text: str) -> dict[str, Listener]:
    return {each.name: each for each in parse_listeners(text)} if text else {}

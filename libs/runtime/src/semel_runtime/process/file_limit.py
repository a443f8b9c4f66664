"""How many files a service may open, and whether its limits of connections fit into that.

Every connection is an open file. A process that has none left accepts no client at all, so a limit
of connections that cannot be reached protects nothing.
"""

import resource
from dataclasses import replace

import structlog

from semel_common.errors import InvalidConfigError
from semel_runtime.server.limits.server_limits import ServerLimits

log = structlog.get_logger(__name__)

OWN_FILES = 256
"""What a service needs besides connections of clients: journal, logs, its calls to others."""
CONNECTIONS_MIN = 64
"""Fewer connections than this are of no use."""


def fit_file_limit(limits: ServerLimits, listeners: int) -> ServerLimits:
    """Raise the limit of open files to the need of the connection limits, if the system lets it.

    If not, returns lower limits, and warns of that. Raises InvalidConfigError if too little is
    left to serve anybody.
    """
    needed = files_needed(limits, listeners)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return limits
    allowed = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed >= needed:
        return limits
    fitted = _lowered(limits, listeners, needed=needed, allowed=allowed)
    log.warning(
        "too few files may be opened: limits of connections are lowered; raise the hard limit of"
        " open files (RLIMIT_NOFILE, LimitNOFILE of systemd), or lower the settings",
        files_allowed=allowed,
        files_needed=needed,
        streams_max=fitted.streams_max,
        visitors_max=fitted.visitors_max,
        grpc_connections_max=fitted.grpc_connections_max,
    )
    return fitted


def files_needed(limits: ServerLimits, listeners: int) -> int:
    """Return how many files a service has open when all its limits of connections are reached."""
    return OWN_FILES + _connections(limits, listeners)


def _connections(limits: ServerLimits, listeners: int) -> int:
    return limits.streams_max + limits.visitors_max + listeners * limits.grpc_connections_max


def _lowered(limits: ServerLimits, listeners: int, *, needed: int, allowed: int) -> ServerLimits:
    left = allowed - OWN_FILES
    if left < CONNECTIONS_MIN:
        raise InvalidConfigError(
            f"this process may open {allowed:,} files, and its limits of connections need"
            f" {needed:,}: less than {OWN_FILES + CONNECTIONS_MIN} are too few to serve clients;"
            " raise the hard limit of open files (RLIMIT_NOFILE, LimitNOFILE of systemd)"
        )
    wanted = _connections(limits, listeners)

    def part(of: int) -> int:
        return max(1, of * left // wanted)

    return replace(
        limits,
        streams_max=part(limits.streams_max),
        visitors_max=part(limits.visitors_max),
        visitors_per_address_max=min(
            limits.visitors_per_address_max, max(1, part(limits.visitors_max) // 4)
        ),
        grpc_connections_max=part(limits.grpc_connections_max),
        grpc_connections_per_address_max=min(
            limits.grpc_connections_per_address_max, max(1, part(limits.grpc_connections_max) // 2)
        ),
    )

"""The fields of RegisterInstance; each error names the field and its value."""

from collections import Counter

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_common.wire.messages.request_bounds import (
    CLAIMS_MAX,
    FOLDER_LENGTH_MAX,
    HOST_LENGTH_MAX,
    ID_LENGTH_MAX,
    LISTENERS_MAX,
)
from semel_coordinator.controller.machine import Registration
from semel_runtime.claims import ClaimHistory, JournalClaim, JournalMark
from semel_runtime.cluster.controller_note import mark_from_wire
from semel_runtime.cluster.metadata_image import Instance, Listener, ServiceRole
from semel_runtime.journal.contract import DiskShortage
from semel_runtime.server.form_checks import (
    INT32_MAX,
    INT64_MAX,
    require_count,
    require_int,
    require_known,
    require_name,
)

_PORT_MAX = 65_535


def read_registration(request: wire.RegisterInstanceRequest) -> Registration:
    """Read a registration; each error names the field."""
    role = require_known("role", request.role, tuple(ServiceRole))
    if request.cluster_id:
        require_name("cluster_id", request.cluster_id, length_max=ID_LENGTH_MAX)
    return Registration(
        instance=Instance(
            role=ServiceRole(role),
            instance_id=require_int("instance_id", request.instance_id, maximum=INT32_MAX),
            listeners=_read_listeners(list(request.listeners)),
        ),
        cluster_id=request.cluster_id,
        claim_epoch=require_int("claim_epoch", request.claim_epoch, minimum=1),
        claim_token=require_name("claim_token", request.claim_token, length_max=ID_LENGTH_MAX),
        journal_end_offset=require_int(
            "journal_end_offset", request.journal_end_offset, maximum=INT64_MAX
        ),
        history=_read_history(request),
        controller=_read_mark(request.controller) if request.HasField("controller") else None,
    )


def read_shortage(request: wire.RegisterInstanceRequest) -> DiskShortage | None:
    """Read what a request says of the disk; each error names the field."""
    if not request.HasField("disk_shortage"):
        return None
    told = request.disk_shortage
    return DiskShortage(
        folder=require_name("disk_shortage.folder", told.folder, length_max=FOLDER_LENGTH_MAX),
        free_bytes=require_int("disk_shortage.free_bytes", told.free_bytes, maximum=INT64_MAX),
        queued_bytes=0,
        reserve_bytes=require_int(
            "disk_shortage.reserve_bytes", told.reserve_bytes, maximum=INT64_MAX
        ),
    )


def _read_history(request: wire.RegisterInstanceRequest) -> ClaimHistory | None:
    if not request.claims:
        return None
    require_count("claims", request.claims, maximum=CLAIMS_MAX)
    history = ClaimHistory(
        claims=tuple(
            JournalClaim(
                claim_epoch=claim.claim_epoch,
                claim_token=claim.claim_token,
                start_offset=claim.start_offset,
            )
            for claim in request.claims
        ),
        recovered_epoch=request.recovered_epoch,
    )
    if not history.is_in_order:
        raise InvalidRequestError("claims are not in the order of their epochs", field="claims")
    return history


def _read_mark(mark: wire.JournalMark) -> JournalMark:
    require_int("controller.claim_epoch", mark.claim_epoch, minimum=1, maximum=INT64_MAX)
    require_int("controller.end_offset", mark.end_offset, maximum=INT64_MAX)
    require_name("controller.claim_token", mark.claim_token, length_max=ID_LENGTH_MAX)
    return mark_from_wire(mark)


def _read_listeners(listeners: list[wire.AdvertisedListener]) -> tuple[Listener, ...]:
    require_count("listeners", listeners, minimum=1, maximum=LISTENERS_MAX)
    name, count = Counter(listener.name for listener in listeners).most_common(1)[0]
    if count > 1:
        raise InvalidRequestError(f"listeners names {name!r} {count} times", field="listeners")
    return tuple(_read_listener(listener) for listener in listeners)


def _read_listener(listener: wire.AdvertisedListener) -> Listener:
    host = require_name("listeners.host", listener.host, length_max=HOST_LENGTH_MAX)
    if not host.isprintable() or set(host) & set(" /,[]"):
        raise InvalidRequestError(f"listeners.host {host!r} is not a host", field="listeners.host")
    return Listener(
        name=require_name("listeners.name", listener.name, length_max=ID_LENGTH_MAX),
        host=host,
        port=require_int("listeners.port", listener.port, minimum=1, maximum=_PORT_MAX),
    )

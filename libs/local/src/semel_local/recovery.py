"""Recovering the volume of one stopped instance: finds the metadata that it needs, and its service.

The running controller tells all others what the cluster looks like, or else its volume, if it is
stopped with them. Coordinator 0 is the controller: it has to be told by the volumes of the others.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_broker import recovery as broker
from semel_broker.journal.record_serde import BrokerSerde
from semel_common.errors import ClusterAuthorizationFailedError, RetriableError, SemelError
from semel_common.wire.channel_options import ChannelOptions
from semel_common.wire.client_security import Security
from semel_common.wire.grpc_connection import GrpcConnector
from semel_common.wire.methods import METADATA
from semel_coordinator import recovery as coordinator
from semel_coordinator.controller.machine import InstanceKey
from semel_coordinator.record_serde import CoordinatorSerde
from semel_group import recovery as group
from semel_group.journal import GroupSerde
from semel_local.cluster import log_to_standard_library
from semel_local.errors import LocalClusterError
from semel_local.layout import CONTROLLER, Role, ServiceName
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_image import ClusterImage, ServiceRole
from semel_runtime.cluster.metadata_serde import image_from_wire
from semel_runtime.journal import JournalError
from semel_runtime.recovery import (
    CopyKeeper,
    Decoder,
    KeptImage,
    Recovered,
    Recovery,
    read_image,
)

__all__ = ["Recovered", "Recovery", "Sources", "recover"]

_TIMEOUT_MS = 10_000
_OF_CONTROLLER = f"--metadata-from {CONTROLLER}=FOLDER"


class _Service(NamedTuple):
    name: str
    decoder: Decoder
    role: ServiceRole


_SERVICES = {
    Role.COORDINATOR: _Service("semel-coordinator", CoordinatorSerde(), ServiceRole.COORDINATOR),
    Role.BROKER: _Service("semel-broker", BrokerSerde(), ServiceRole.BROKER),
    Role.GROUP_COORDINATOR: _Service("semel-group", GroupSerde(), ServiceRole.GROUP_COORDINATOR),
}


class Sources(Struct, frozen=True, kw_only=True):
    """Who tells what the cluster looks like."""

    bootstrap: str = ""
    """A running coordinator; empty: the folders tell."""
    security: Security | None = None
    """How to connect to it: as one of its services, where those are told apart."""
    folders: Mapping[ServiceName, Path] = {}
    """Of stopped instances: of coordinator 0, or, if that one is recovered, of all others."""
    partial: bool = False
    """Do without the volumes of instances that are needed, and not given."""


async def recover(
    name: ServiceName, folder: Path, recovery: Recovery, sources: Sources
) -> Recovered:
    """Make a stopped instance's older volume, or its new, empty one, fit to serve again.

    Raises LocalClusterError with a sentence that says what to do, and SemelError.
    """
    log_to_standard_library()
    try:
        if name == CONTROLLER:
            image, marks = await _newest(name, sources)
            return await coordinator.recover(folder, recovery, image, marks)
        image = (
            await ask_for_image(sources) if sources.bootstrap else (await _newest(name, sources))[0]
        )
        match name.role:
            case Role.COORDINATOR:
                return await coordinator.recover(folder, recovery, image)
            case Role.BROKER:
                return await broker.recover(folder, recovery, image)
            case Role.GROUP_COORDINATOR:
                return await group.recover(folder, recovery, image)
    except JournalError as error:
        raise LocalClusterError(str(error)) from error


async def ask_for_image(sources: Sources) -> ClusterImage:
    """Return what a running cluster looks like. Raises LocalClusterError."""
    bootstrap = sources.bootstrap
    connector = GrpcConnector(ChannelOptions(), sources.security)
    request = wire.MetadataRequest(all_topics=True, all_listeners=True)
    try:
        return image_from_wire(await _ask_each(bootstrap.split(","), connector, request))
    except ClusterAuthorizationFailedError as error:
        raise LocalClusterError(
            f"the controller at {bootstrap} tells only services what the cluster looks like"
            f" ({error.message}): show the instance's own certificate,"
            " as in `semel --tls-cert services.pem --tls-key services.key recover`"
        ) from error
    except SemelError as error:
        raise LocalClusterError(
            f"the controller at {bootstrap} cannot be asked what the cluster looks like"
            f" ({error.message}): start it first, or stop the cluster, and let the controller's"
            f" folder tell, with {_OF_CONTROLLER}"
        ) from error
    finally:
        await connector.close()


async def _ask_each(
    addresses: Sequence[str], connector: GrpcConnector, request: wire.MetadataRequest
) -> wire.MetadataResponse:
    """Ask one address after the other until a coordinator answers; raises the last one's error."""
    *others, last = addresses
    for address in others:
        try:
            connection = connector.connect(address.strip())
            return await connection.call(METADATA, request, timeout_ms=_TIMEOUT_MS)
        except RetriableError:
            continue
    return await connector.connect(last.strip()).call(METADATA, request, timeout_ms=_TIMEOUT_MS)


async def _newest(
    recovered: ServiceName, sources: Sources
) -> tuple[ClusterImage, Mapping[InstanceKey, JournalMark]]:
    """Return the newest metadata of all volumes, and how far the journal of each goes."""
    kept = {_key(name): await _read(name, folder) for name, folder in sources.folders.items()}
    images = [each.image for each in kept.values() if each.image is not None]
    if not images:
        raise LocalClusterError(
            "coordinator-0 keeps the metadata of the cluster, and its older volume may lack topics:"
            " stop all instances, and give their folders with --metadata-from NAME=FOLDER, as in"
            " --metadata-from broker-0=/data/broker-0"
        )
    newest = max(images, key=lambda image: image.version)
    missing = [str(each) for each in _needed(recovered, newest) if each not in kept]
    if missing and not sources.partial:
        raise LocalClusterError(
            f"the folders of {', '.join(missing)} are missing, and may have newer metadata: give"
            " them with --metadata-from NAME=FOLDER, or say --partial if they are lost"
        )
    return newest, {key: each.mark for key, each in kept.items()}


async def _read(name: ServiceName, folder: Path) -> KeptImage:
    service, decoder, _ = _SERVICES[name.role]
    keeper = coordinator.ControllerKeeper() if name == CONTROLLER else CopyKeeper()
    return await read_image(folder, decoder, keeper, service=f"{service} {name.instance_id}")


def _needed(recovered: ServiceName, image: ClusterImage) -> list[InstanceKey]:
    """Return whose metadata count: the controller's, or those of all that it has told."""
    if recovered != CONTROLLER:
        return [_key(CONTROLLER)]
    known = [InstanceKey(instance.role, instance.instance_id) for instance in image.instances]
    return [each for each in known if each != _key(CONTROLLER)]


def _key(name: ServiceName) -> InstanceKey:
    return InstanceKey(_SERVICES[name.role].role, name.instance_id)

"""Which services a local cluster has and where they are, and the file that keeps it.

``semel.json`` in the data folder is written before the first start, so that every later start
comes back at the same addresses. Instances may be added; how many coordinators and group
coordinators there were when the cluster was made stays with it, for that says who leads the ids and
groups that were never moved.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeAlias

from semel_common.file_modes import make_private_file
from semel_local.errors import FolderError, PortInUseError
from semel_local.ports import free_port, is_free, port_range

LAYOUT_FILE = "semel.json"
HOST = "127.0.0.1"
DEFAULT_PORT = 9092
_FORMAT = 1


class Role(StrEnum):
    """What an instance does."""

    COORDINATOR = "coordinator"
    BROKER = "broker"
    GROUP_COORDINATOR = "group-coordinator"


class ServiceName(NamedTuple):
    """One instance of a service: ``broker-0``."""

    role: Role
    instance_id: int

    def __str__(self) -> str:
        return f"{self.role}-{self.instance_id}"

    @classmethod
    def parse(cls, text: str) -> "ServiceName":
        """Read ``broker-0``; raises ValueError."""
        role, _, number = text.rpartition("-")
        return cls(Role(role), int(number))


CONTROLLER = ServiceName(Role.COORDINATOR, 0)
"""The instance that clients are told of, and that keeps the cluster's metadata."""


Settings: TypeAlias = Mapping[Role, Mapping[str, str | int]]
"""Options for the services of each role, by their names in the service's configuration."""


def service_settings(name: ServiceName, made_with: Mapping[Role, int]) -> dict[str, str | int]:
    """Return the options by which a service knows its place among the others."""
    settings: dict[str, str | int] = {"instance_id": name.instance_id}
    if name.role is Role.COORDINATOR:
        settings["coordinators"] = made_with[Role.COORDINATOR]
        settings["group_coordinators"] = made_with[Role.GROUP_COORDINATOR]
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a start asks for. None: as the folder has it, or one of each."""

    brokers: int | None = None
    coordinators: int | None = None
    group_coordinators: int | None = None
    port: int | None = None
    """Of the bootstrap address; None: the one that the folder has, or 9092; 0: the one that the
    folder has if it is free, or any that is."""

    def count(self, role: Role) -> int | None:
        """Return how many instances of a role are asked for."""
        match role:
            case Role.COORDINATOR:
                return self.coordinators
            case Role.BROKER:
                return self.brokers
            case Role.GROUP_COORDINATOR:
                return self.group_coordinators


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """Every service with its port."""

    ports: Mapping[ServiceName, int]
    made_with: Mapping[Role, int]
    """How many instances of each role there were when the cluster was made."""

    @property
    def names(self) -> tuple[ServiceName, ...]:
        """All services: coordinators, then brokers, then group coordinators."""
        return tuple(name for role in Role for name in self.of(role))

    @property
    def bootstrap(self) -> str:
        """The address that clients are told."""
        return self.address(CONTROLLER)

    def of(self, role: Role) -> tuple[ServiceName, ...]:
        """Return the instances of a role."""
        return tuple(sorted(name for name in self.ports if name.role is role))

    def address(self, name: ServiceName) -> str:
        """Return where a service listens, as ``host:port``."""
        return f"{HOST}:{self.ports[name]}"


def read_layout(folder: Path) -> ClusterLayout | None:
    """Return what the folder keeps; None if no cluster was started there. Raises FolderError."""
    path = folder / LAYOUT_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        _refuse_strangers(folder)
        return None
    except OSError as error:
        raise FolderError(
            f"cannot read {path} ({error.strerror}): choose another folder"
        ) from error
    try:
        content = json.loads(text)
        known = content["format"] == _FORMAT
        ports = {ServiceName.parse(name): int(port) for name, port in content["ports"].items()}
        ports[CONTROLLER]
        counts = Counter(name.role for name in ports)
        made_with = {role: int(content.get("made_with", counts)[role]) for role in Role}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FolderError(f"{path} is damaged: restore it, or choose another folder") from error
    if not known:
        raise FolderError(f"{path} was written by a newer version of Semel: use that one")
    return ClusterLayout(ports, made_with)


def write_layout(folder: Path, layout: ClusterLayout) -> None:
    """Keep a layout in its folder, all of it or nothing."""
    ports = {str(name): layout.ports[name] for name in layout.names}
    content = {"format": _FORMAT, "ports": ports, "made_with": dict(layout.made_with)}
    write_atomically(folder / LAYOUT_FILE, json.dumps(content, indent=2))


def write_atomically(path: Path, text: str) -> None:
    """Put a file in its place as a whole: readers see the old one or the new one.

    Raises FolderError.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        make_private_file(new)
        with new.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise FolderError(f"cannot write {path} ({error.strerror})") from error


def plan_layout(known: ClusterLayout | None, wanted: Wanted) -> ClusterLayout:
    """Return which services to start where. Raises FolderError, PortInUseError, NoPortFreeError."""
    counts = {role: _count(known, wanted.count(role), role) for role in Role}
    names = [ServiceName(role, number) for role in Role for number in range(counts[role])]
    kept = dict(known.ports) if known else {}
    bootstrap = _bootstrap_port(kept.get(CONTROLLER), wanted.port)
    ports = _fill_ports({**kept, CONTROLLER: bootstrap}, names)
    return ClusterLayout(ports, known.made_with if known else counts)


def with_one_more(layout: ClusterLayout, name: ServiceName) -> ClusterLayout:
    """Return a layout of which all services but the new one run already, on their ports."""
    taken = set(layout.ports.values())
    candidates = (port for port in port_range(layout.ports[CONTROLLER]) if port not in taken)
    return replace(layout, ports={**layout.ports, name: free_port(candidates)})


def _count(known: ClusterLayout | None, wanted: int | None, role: Role) -> int:
    if known is None:
        return 1 if wanted is None else wanted
    stored = len(known.of(role))
    if wanted is None or wanted == stored:
        return stored
    if wanted < stored:
        raise FolderError(
            f"this cluster has {stored} {role}s, more than {wanted}: they may be added, but not"
            f" taken away, for partitions live on them. Ask for {stored} or more"
        )
    return wanted


def _bootstrap_port(stored: int | None, wanted: int | None) -> int:
    if wanted == 0:
        return stored if stored and is_free(stored) else free_port(port_range())
    port = wanted or stored or DEFAULT_PORT
    if not is_free(port):
        raise PortInUseError(port)
    return port


def _fill_ports(
    ports: Mapping[ServiceName, int], names: Iterable[ServiceName]
) -> dict[ServiceName, int]:
    """Keep ports that are free; give the others the next free ones after the bootstrap port."""
    filled = {CONTROLLER: ports[CONTROLLER]}
    for name in names:
        port = ports.get(name)
        if name != CONTROLLER:
            usable = port is not None and port not in filled.values() and is_free(port)
            taken = {*ports.values(), *filled.values()}
            candidates = (p for p in port_range(filled[CONTROLLER]) if p not in taken)
            filled[name] = port if port is not None and usable else free_port(candidates)
    return filled


def _refuse_strangers(folder: Path) -> None:
    """Raise FolderError if the folder has files of another program."""
    if folder.is_dir() and any(not path.name.startswith("semel.") for path in folder.iterdir()):
        raise FolderError(
            f"{folder} has files in it, but no cluster ({LAYOUT_FILE}): choose an empty folder"
        )

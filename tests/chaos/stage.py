"""The services of a run: real processes, each behind its links and on its disk, always restarted.

A service has one listener for each role that calls it, and advertises the proxies in front of them.
So a caller goes through the link of its role, by the addresses that the cluster tells.
"""

import asyncio
import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from signal import Signals
from typing import Self

from chaos.database import Database
from chaos.disk import Disk, compile_library
from chaos.proxy import Link, Ports
from chaos.secured import Secured
from semel_local import ProcessCluster, ports
from semel_local.errors import ServiceFailedError
from semel_local.layout import (
    CONTROLLER,
    HOST,
    ClusterLayout,
    Role,
    ServiceName,
    Settings,
    write_layout,
)
from semel_local.process import Ended
from semel_local.processes import StartOptions

COUNTS = {Role.COORDINATOR: 2, Role.BROKER: 3, Role.GROUP_COORDINATOR: 2}
TRANSACTION_LOG_PARTITIONS = 5
GROUP_PARTITIONS = 5
NAMES = tuple(ServiceName(role, number) for role in Role for number in range(COUNTS[role]))
CLIENTS = "default"
"""The listener of clients, and with it their name as the source of a link."""
SOURCES = (CLIENTS, *(role.value for role in Role))
RESTART_S = 0.3
"""When a service that has ended by itself is started again."""
_LOST_DISK_S = 5.0
_LOST_DATABASE_S = 30.0
"""A service that had nothing to write meanwhile finds its connection lost at its next write."""

_COMMON: dict[str, str | int] = {
    "request_timeout_ms": 1_000,
    "registration_interval_ms": 2_000,
    "metadata_max_wait_ms": 5_000,
}
SETTINGS: Settings = {
    Role.COORDINATOR: {
        **_COMMON,
        "transaction_state_log_num_partitions": TRANSACTION_LOG_PARTITIONS,
        "offsets_topic_num_partitions": GROUP_PARTITIONS,
        "instance_live_ms": 5_000,
    },
    Role.BROKER: {**_COMMON, "transaction_inquiry_interval_ms": 2_000},
    Role.GROUP_COORDINATOR: {
        **_COMMON,
        "group_consumer_session_timeout_ms": 6_000,
        "group_consumer_heartbeat_interval_ms": 1_000,
        "group_consumer_reconciling_heartbeat_interval_ms": 200,
        "transaction_inquiry_interval_ms": 2_000,
    },
}


class Stage:
    """All services, in a folder. ``async with`` starts them, and stops them."""

    def __init__(
        self,
        folder: Path,
        *,
        secured: Secured | None = None,
        database: Database | None = None,
    ) -> None:
        """Do no I/O yet. Without ``secured``, everything is plain text.

        With a ``database``, which must run, journals are there, and a killed service loses its
        disk and its address.
        """
        self._secured = {} if secured is None else secured.settings
        self.database = database
        self.folder = folder
        self.problems: list[str] = []
        """Services that ended by themselves, when nothing had been done to where they write."""
        self.ends = 0
        """How often a service ended by itself, for whatever reason."""
        self.links: dict[tuple[str, str], Link] = {}
        """By source, a role or the clients, and the instance they lead to."""
        self.disks: dict[str, Disk] = {}
        self.has_disk_faults = False
        self.troubled: dict[str, float] = {}
        """Until when a service's disk, or its database, was in trouble; in the loop's time."""
        self.names = tuple(str(name) for name in NAMES)
        self._ports = _free_ports()
        self._real_ports: dict[tuple[str, str], Ports] = {}
        self._busy: set[str] = set()
        self._open = False
        self._tasks = asyncio.TaskGroup()
        self._cluster = ProcessCluster(
            folder / "cluster",
            security=None if secured is None else secured.nobody,
            settings=SETTINGS,
            on_ended=self._ended,
            start_options=self._start_options,
        )

    @property
    def bootstrap(self) -> str:
        """The address of coordinator 0 for clients; it never moves."""
        return f"{HOST}:{self.links[CLIENTS, str(CONTROLLER)].ports.grpc}"

    async def __aenter__(self) -> Self:
        data, disks = self.folder / "cluster", self.folder / "disks"
        data.mkdir(parents=True)
        disks.mkdir()
        library = compile_library(disks) if self.database is None else None
        self.has_disk_faults = library is not None
        for name in self.names:
            self.disks[name] = Disk(library, disks / name, data / name)
            for source in SOURCES:
                real = self._real_ports[source, name] = self._next_ports()
                link = self.links[source, name] = Link(source, name, real)
                await link.listen(self._next_ports())
        layout = {name: self._real_ports[CLIENTS, str(name)].grpc for name in NAMES}
        write_layout(data, ClusterLayout(layout, Counter(name.role for name in NAMES)))
        await self._tasks.__aenter__()
        await self._cluster.open()
        self._open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open = False
        for name in self.names:
            self._cluster.signal(name, Signals.SIGCONT)
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self._cluster.stop()
            await asyncio.gather(*(link.close() for link in self.links.values()))

    def log_paths(self) -> dict[str, Path]:
        """Return the output of each service."""
        return {name: self._cluster.log_path(name) for name in self.names}

    # -- faults of services ----------------------------------------------------------------------

    def is_busy(self, name: str) -> bool:
        """Whether a service is being restarted."""
        return name in self._busy

    async def kill(self, name: str, *, pause_s: float, move: bool) -> bool:
        """Kill a service and start it again later; False if another task restarts it already."""
        with self._claim(name) as claimed:
            if claimed:
                await self._cluster.kill(name)
                if self.database is not None:
                    shutil.rmtree(self.folder / "cluster" / name, ignore_errors=True)
                await self._start_again(name, pause_s, move=move or self.database is not None)
        return claimed

    async def restart_in_order(self, name: str, *, move: bool) -> bool:
        """Stop a service, start it again and wait until it is ready, as a rolling update does."""
        with self._claim(name) as claimed:
            if claimed:
                self._cluster.signal(name, Signals.SIGCONT)
                await self._cluster.stop_service(name)
                await self._start_again(name, 0.0, move=move)
        if claimed:
            await self._become_ready(name)
        return claimed

    async def rotate_addresses(self, *names: str) -> bool:
        """Stop services, and start one after the other at the addresses that the next one had."""
        with contextlib.ExitStack() as claims:
            claimed = all(claims.enter_context(self._claim(name)) for name in names)
            if claimed:
                await self._rotate(names)
        return claimed

    async def _rotate(self, names: Sequence[str]) -> None:
        for name in names:
            self._cluster.signal(name, Signals.SIGCONT)
            await self._cluster.stop_service(name)
        ports = {key: link.ports for key, link in self.links.items()}
        for source, name in product(SOURCES, names):
            await self.links[source, name].stop_listening()
        for name, other in zip(names, (*names[1:], names[0]), strict=True):
            for source in SOURCES:
                await self.links[source, name].listen(ports[source, other])
            await self._cluster.start(name, wait=False)
            await self._become_ready(name)

    def signal(self, name: str, number: Signals) -> None:
        """Send a service a signal."""
        self._cluster.signal(name, number)

    async def wait_ready(self) -> None:
        """Wait until every service runs and is ready."""
        while True:
            try:
                return await self._cluster.wait_ready()
            except ServiceFailedError:  # Its disk failed it until now: the stage starts it again.
                await asyncio.sleep(RESTART_S)

    async def _become_ready(self, name: str) -> None:
        """Wait until a service is ready, or has ended: another fault, or its disk, may end it."""
        with contextlib.suppress(ServiceFailedError):
            await self._cluster.wait_ready(name)

    @contextlib.contextmanager
    def _claim(self, name: str) -> Iterator[bool]:
        claimed = name not in self._busy
        self._busy.add(name)
        try:
            yield claimed
        finally:
            if claimed:
                self._busy.discard(name)

    async def _start_again(self, name: str, pause_s: float, *, move: bool) -> None:
        await asyncio.sleep(pause_s)
        if move and name != str(CONTROLLER):
            for source in SOURCES:
                await self.links[source, name].listen(self._next_ports())
        if self._open:
            await self._cluster.start(name, wait=False)

    def _ended(self, ended: Ended) -> None:
        self.ends += 1
        now = asyncio.get_running_loop().time()
        grace_s = _LOST_DISK_S if self.database is None else _LOST_DATABASE_S
        if self.troubled.get(ended.name, -grace_s) + grace_s < now:
            self.problems.append(str(ended))
        if self._open:
            self._tasks.create_task(self._revive(ended.name), name=f"revive {ended.name}")

    async def _revive(self, name: str) -> None:
        """Start a service again that has ended by itself, when no other task restarts it."""
        await asyncio.sleep(RESTART_S)
        while self._open:
            with self._claim(name) as claimed:
                if claimed and name not in self._cluster.pids():
                    await self._cluster.start(name, wait=False)
            if claimed:
                return
            await asyncio.sleep(RESTART_S)

    # -- how they are started --------------------------------------------------------------------

    def _start_options(self, name: ServiceName) -> StartOptions:
        own = str(name)
        settings = {
            "listeners": _listeners(lambda source: self._real_ports[source, own].grpc),
            "advertised_listeners": _listeners(lambda source: self.links[source, own].ports.grpc),
            "frame_listeners": _listeners(lambda source: self._real_ports[source, own].frames),
            "advertised_frame_listeners": _listeners(
                lambda source: self.links[source, own].ports.frames
            ),
            "inter_broker_listener_name": name.role.value,
            "controller": f"{HOST}:{self.links[name.role.value, str(CONTROLLER)].ports.grpc}",
            **self._secured,
        }
        where = self.disks[own] if self.database is None else self.database
        return StartOptions(settings=settings, environment=where.environment)

    def _next_ports(self) -> Ports:
        return Ports(grpc=next(self._ports), frames=next(self._ports))


def _listeners(port_of: Callable[[str], int]) -> str:
    return ",".join(f"{source}://{HOST}:{port_of(source)}" for source in SOURCES)


def _free_ports() -> Iterator[int]:
    """Yield free ports, round and round, from a place that no other stage has at the same time."""
    all_ports = ports.choice
    start = random.randrange(len(all_ports))
    while True:
        with contextlib.suppress(StopIteration):
            yield from _each_free(chain(all_ports[start:], all_ports[:start]))


def _each_free(candidates: Iterator[int]) -> Iterator[int]:
    for port in candidates:
        yield ports.free_port(chain([port], candidates))

"""A whole cluster as real processes of this machine: started together, killed and started again.

The folder keeps everything: the layout with its ports, a data folder and a log for each service.
So a service that is killed comes back with its data at its address, and so does the cluster.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Self

from semel_common.file_modes import shut_others_out
from semel_local.certificates import LocalCertificates
from semel_local.errors import LocalClusterError, ServiceFailedError, first_of
from semel_local.folder import FolderLock, forget_pids, stop_leftovers, write_pids
from semel_local.layout import (
    CONTROLLER,
    ClusterLayout,
    Role,
    ServiceName,
    Settings,
    Wanted,
    plan_layout,
    read_layout,
    service_settings,
    with_one_more,
    write_layout,
)
from semel_local.process import Ended, ManagedProcess
from semel_local.volume import room_of

if TYPE_CHECKING:
    from semel_common.wire.client_security import Security

TLS_FOLDER = "tls"
START_TIMEOUT_S = 60.0
"""How long services may take to become ready."""
STOP_GRACE_S = 10.0
"""How long a service may take to stop in order before it is killed."""

_MODULES = {
    Role.COORDINATOR: "semel_coordinator",
    Role.BROKER: "semel_broker",
    Role.GROUP_COORDINATOR: "semel_group",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What one service gets at one start, beside what all of its role get."""

    settings: Mapping[str, str | int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


class ProcessCluster:
    """All services of a cluster, each a process of its own, on the loopback interface.

    ::

        async with ProcessCluster(folder, brokers=2) as cluster:
            async with SemelClient(cluster.bootstrap) as client:
                ...
                await cluster.kill("broker-0")     # as kill -9
                await cluster.start("broker-0")    # same data, same address

    Services are called ``coordinator-0``, ``broker-0``, ``group-coordinator-0`` and so on. They get
    their settings as arguments, before those of the environment (``SEMEL_…``) that they inherit.
    Use it in one event loop; ``async with`` starts all, waits until they are ready, and stops them.
    """

    def __init__(  # noqa: PLR0913 - all are named
        self,
        folder: Path,
        *,
        brokers: int | None = None,
        coordinators: int | None = None,
        group_coordinators: int | None = None,
        port: int | None = 0,
        tls: bool = False,
        security: "Security | None" = None,
        settings: Settings | None = None,
        environment: Mapping[str, str] | None = None,
        on_ended: Callable[[Ended], None] | None = None,
        start_options: Callable[[ServiceName], StartOptions] | None = None,
    ) -> None:
        """Do no I/O yet.

        Numbers that are not given are those of the folder, or one of each. ``port`` is that of the
        bootstrap address: 0 for any free one when the cluster is made, None for 9092. ``tls``:
        services ask for certificates, which are made for this cluster; ``security`` is what to
        connect with where ``tls`` does not make it. ``environment`` is what services inherit, to
        look up their reserve of the volume. ``on_ended`` is told of services that end
        without being asked to. ``start_options`` is asked at every start of a service.
        """
        self.folder = folder.resolve()
        self._wanted = Wanted(
            brokers=brokers,
            coordinators=coordinators,
            group_coordinators=group_coordinators,
            port=port,
        )
        self._certificates = LocalCertificates(self.folder / TLS_FOLDER) if tls else None
        self._security = security
        self._settings = settings or {}
        self._environment = environment or {}
        self._on_ended = on_ended
        self._start_options = start_options or (lambda _: StartOptions())
        self._layout: ClusterLayout | None = None
        self._processes: dict[str, ManagedProcess] = {}
        self._group = asyncio.TaskGroup()
        self._held = ExitStack()
        self._running = False
        self.volume_warning = ""
        """What to tell of a volume with little room; to be read once the cluster is open."""
        self.mode_before: int | None = None
        """The mode of a folder that other users could use, and no longer can."""
        self.leftovers: Sequence[str] = ()
        """Services of an earlier supervisor that were still running, and were stopped."""

    # -- contents -----------------------------------------------------------------------------

    @property
    def layout(self) -> ClusterLayout:
        """Which services there are, and where."""
        if self._layout is None:
            raise LocalClusterError("the cluster is not started")
        return self._layout

    @property
    def bootstrap(self) -> str:
        """The address that clients need, ``host:port``."""
        return self.layout.bootstrap

    @property
    def security(self) -> "Security | None":
        """What clients connect with; None: nothing. To be read once the cluster is open."""
        return self._security

    @property
    def certificates(self) -> "LocalCertificates | None":
        """The files that ``tls`` has made."""
        return self._certificates

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all services."""
        return tuple(self._processes)

    def address(self, name: str) -> str:
        """Return where a service listens, as ``host:port``."""
        return self.layout.address(ServiceName.parse(name))

    def pid(self, name: str) -> int | None:
        """Return the number of a service's process, while it runs."""
        return self._processes[name].pid

    def pids(self) -> dict[str, int]:
        """Return the number of each process that runs, by the name of its service."""
        return {name: process.pid for name, process in self._processes.items() if process.pid}

    def log_path(self, name: str) -> Path:
        """Return the file with a service's output."""
        return self._processes[name].log_path

    # -- life and death of one service --------------------------------------------------------

    async def kill(self, name: str) -> None:
        """Kill a service as ``kill -9`` does; returns when it is gone."""
        await self._processes[name].kill()

    async def stop_service(self, name: str) -> int:
        """Stop a service in order; returns its exit status."""
        return await self._processes[name].stop(grace_s=STOP_GRACE_S)

    def signal(self, name: str, number: Signals) -> None:
        """Send a service a signal, such as SIGSTOP."""
        self._processes[name].signal(number)

    async def start(self, name: str, *, wait: bool = True) -> None:
        """Start a service that does not run, on its data and its port.

        Returns when it is ready, or at once if told not to wait. Raises ServiceFailedError.
        """
        assert not self._processes[name].running, f"{name} runs already"
        process = self._processes[name] = self._process(ServiceName.parse(name))
        await process.spawn()
        self._group.create_task(self._watch(process), name=f"watch {name}")
        write_pids(self.folder, self.pids())
        if wait:
            await self.wait_ready(name)

    async def add(self, role: Role) -> str:
        """Start one more instance, which leads nothing yet; returns its name when it is ready.

        The folder keeps it: later starts have it, too. Raises ServiceFailedError.
        """
        name = ServiceName(role, len(self.layout.of(role)))
        self._layout = with_one_more(self.layout, name)
        write_layout(self.folder, self._layout)
        self._processes[str(name)] = self._process(name)
        await self.start(str(name))
        return str(name)

    async def restart(self, name: str) -> None:
        """Kill a service and start it again; returns when it is ready."""
        await self.kill(name)
        await self.start(name)

    async def wait_ready(self, *names: str) -> None:
        """Wait until these services, or all, answer that they are ready.

        Raises ServiceFailedError if one ends before, or takes too long.
        """
        waiting = set(names or self.names)
        try:
            async with asyncio.timeout(START_TIMEOUT_S), asyncio.TaskGroup() as group:
                for name in sorted(waiting):
                    group.create_task(self._wait_one(name, waiting), name=f"wait for {name}")
        except TimeoutError:
            raise ServiceFailedError(
                f"{', '.join(sorted(waiting))} not ready after {START_TIMEOUT_S:g} s:"
                f" see the logs in {self.folder / 'logs'}"
            ) from None
        except BaseExceptionGroup as group:
            raise first_of(group) from None

    # -- all of them --------------------------------------------------------------------------

    async def open(self) -> None:
        """Start all services and wait until they are ready.

        Raises FolderError, PortInUseError, NoPortFreeError or ServiceFailedError; then none is left
        running.
        """
        read_layout(self.folder)  # Leaves no lock in a folder that is none of ours.
        with ExitStack() as stack:
            stack.enter_context(FolderLock(self.folder))
            known = read_layout(self.folder)
            self._look_at_volume(is_new=known is None)
            with suppress(PermissionError):  # Another user's folder: its content is private.
                self.mode_before = shut_others_out(self.folder) if known else None
            self.leftovers = await stop_leftovers(self.folder)
            self._layout = plan_layout(known, self._wanted)
            write_layout(self.folder, self._layout)
            if self._certificates is not None:
                self._certificates.make()
                self._security = self._certificates.security()
            self._held = stack.pop_all()
        self._processes = {str(name): self._process(name) for name in self._layout.names}
        await self._group.__aenter__()
        self._running = True
        try:
            for name in self._processes:
                await self.start(name, wait=False)
            await self.wait_ready()
        except BaseException:
            await self.stop()
            raise

    def _look_at_volume(self, *, is_new: bool) -> None:
        """Note whether the volume is small. Raises FolderError if a new cluster has no room."""
        room = room_of(self.folder, self._settings, self._environment)
        if room is None:
            return
        if is_new:
            room.check_new_cluster()
        self.volume_warning = room.warning()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all services."""
        await self.stop()

    async def stop(self) -> dict[str, int]:
        """Stop all services at once; returns the exit statuses. May be called twice.

        Cancelled, it kills them.
        """
        if not self._running:
            return {}
        self._running = False
        try:
            async with asyncio.TaskGroup() as group:
                stopping = {
                    name: group.create_task(process.stop(grace_s=STOP_GRACE_S), name=f"stop {name}")
                    for name, process in self._processes.items()
                }
        except BaseException:
            for process in self._processes.values():
                process.signal(Signals.SIGKILL)
            raise
        finally:
            await self._group.__aexit__(None, None, None)
            forget_pids(self.folder)
            self._held.close()
        return {name: task.result() for name, task in stopping.items()}

    async def _watch(self, process: ManagedProcess) -> None:
        ended = await process.wait_unexpected()
        if ended is not None and self._on_ended is not None:
            self._on_ended(ended)

    async def _wait_one(self, name: str, waiting: set[str]) -> None:
        from semel_local.health import wait_serving  # noqa: PLC0415 - loads gRPC while services start

        async with asyncio.TaskGroup() as race:
            end = race.create_task(_fail_at_end(self._processes[name]), name=f"end of {name}")
            await wait_serving(self.address(name), self._security)
            end.cancel()
        waiting.discard(name)

    def _process(self, name: ServiceName) -> ManagedProcess:
        layout, own = self.layout, self._start_options(name)
        options = {
            "data_dir": str(self.folder / str(name)),
            **service_settings(name, layout.made_with),
            "listeners": f"default://{layout.address(name)}",
            "controller": layout.address(CONTROLLER),
            **({} if self._certificates is None else self._certificates.settings()),
            **self._settings.get(name.role, {}),
            **own.settings,
        }
        arguments = (f"--{option}={value}" for option, value in options.items())
        command = (sys.executable, "-m", _MODULES[name.role], *arguments)
        log_path = self.folder / "logs" / f"{name}.log"
        return ManagedProcess(str(name), command, log_path, environment=own.environment)


async def _fail_at_end(process: ManagedProcess) -> None:
    raise ServiceFailedError(str(process.ended(await process.wait())))

"""`semel up`: a whole cluster as processes of this machine, until Ctrl-C."""

import asyncio
import os
import shlex
import signal
import time
from collections import defaultdict, deque
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel_cli.local.port_user import named_port_user
from semel_cli.local.running_clusters import (
    RunningCluster,
    data_folder,
    forget_running,
    write_running,
)
from semel_cli.shared.command_errors import UsageError
from semel_cli.shared.command_session import run
from semel_cli.shared.command_tracing import ENDPOINT, checked_endpoint, new_jaeger
from semel_cli.shared.options import not_empty, path
from semel_cli.shared.output import Facts, Format, Table, examples, note, progress, show
from semel_common.stop_signals import heeded_signals

if TYPE_CHECKING:
    from semel_cli.local.up_console import UpConsole
    from semel_local import ProcessCluster
    from semel_local.jaeger import Jaeger
    from semel_local.layout import ServiceName
    from semel_local.metrics import MetricsPorts
    from semel_local.process import Ended
    from semel_local.processes import StartOptions

RESTARTS_MAX = 5
RESTARTS_WINDOW_S = 60.0
RESTART_PAUSE_S = 1.0
"""After a start that failed, before the next one."""

Count = Annotated[
    int | None, typer.Option(min=1, max=100, help="May be raised later.", show_default="1")
]

EXAMPLES = examples(
    "semel up",
    "semel up --brokers 3 --data ./orders-cluster",
    "semel up --metrics",
    "semel up --tls",
    "semel up --port 0     # any port that is free",
    "semel up --jaeger     # with traces, and where to see them",
)

MetricsOption = Annotated[
    bool, typer.Option("--metrics", help="Let every service serve metrics for Prometheus.")
]
TlsOption = Annotated[
    bool,
    typer.Option(
        help="Encrypt everything, and admit only clients with a certificate: made for this cluster"
        " in its folder, found by the other commands."
    ),
]
RestartOption = Annotated[
    bool, typer.Option(help="Start a service again that has ended by itself.")
]
OtlpOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Export traces to a collector, such as http://127.0.0.1:4317.",
        callback=not_empty,
    ),
]
ConsoleOption = Annotated[
    bool, typer.Option(help="Start the console, which shows the cluster in a browser.")
]
JaegerOption = Annotated[
    bool, typer.Option("--jaeger", help="Start Jaeger too, and export traces to it.")
]


def up(  # noqa: PLR0913, PLR0917 - each option is an argument
    data: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            metavar="FOLDER",
            help="Folder of the cluster; made if it is not there.",
            show_default="semel in the user's data folder",
        ),
    ] = None,
    brokers: Count = None,
    coordinators: Count = None,
    group_coordinators: Count = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="Port of the bootstrap address; 0: any that is free.",
            show_default="9092",
        ),
    ] = None,
    metrics: MetricsOption = False,
    tls: TlsOption = False,
    restart: RestartOption = True,
    otlp: OtlpOption = None,
    jaeger: JaegerOption = False,
    console: ConsoleOption = True,
) -> None:
    """Start a cluster on this machine, and stop it with Ctrl-C.

    Every service is a process of its own; data, logs and addresses stay in the folder, so the next
    start continues where this one ended. Settings of the services (SEMEL_…) are taken from the
    environment.
    """
    from semel_local import ProcessCluster

    ended: asyncio.Queue[Ended] = asyncio.Queue()
    folder = data or data_folder()

    async def bring_up() -> int:
        watch = _watch(folder, metrics=metrics, otlp=otlp, jaeger=jaeger)
        cluster = ProcessCluster(
            folder,
            brokers=brokers,
            coordinators=coordinators,
            group_coordinators=group_coordinators,
            port=port,
            tls=tls,
            environment=os.environ,
            on_ended=ended.put_nowait,
            start_options=watch.start_options,
        )
        async with nullcontext() if watch.jaeger is None else watch.jaeger:
            return await _run(cluster, ended, watch, restart=restart, console=console)

    raise typer.Exit(run(bring_up()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How the services can be watched."""

    ports: "MetricsPorts | None"
    """Where metrics are; None: nowhere."""
    endpoint: str | None
    """Where spans go; None: wherever the environment says."""
    jaeger: "Jaeger | None"
    """Of this cluster's own."""

    def start_options(self, name: "ServiceName") -> "StartOptions":
        """Return what a service is told of it."""
        from semel_local.processes import StartOptions

        return StartOptions(
            settings={} if self.ports is None else self.ports.start_options(name).settings,
            environment={} if self.endpoint is None else {ENDPOINT: self.endpoint},
        )


def _watch(folder: Path, *, metrics: bool, otlp: str | None, jaeger: bool) -> Watch:
    from semel_local.metrics import MetricsPorts

    if jaeger and otlp:
        raise UsageError("--otlp and --jaeger both say where traces go: give one of them")
    ports = MetricsPorts() if metrics else None
    if jaeger:
        made = new_jaeger(folder)
        return Watch(ports=ports, endpoint=made.otlp, jaeger=made)
    return Watch(ports=ports, endpoint=checked_endpoint(otlp) if otlp else None, jaeger=None)


async def _run(
    cluster: "ProcessCluster",
    ended: "asyncio.Queue[Ended]",
    watch: Watch,
    *,
    restart: bool,
    console: bool,
) -> int:
    """Return the exit status."""
    task = asyncio.current_task()
    assert task is not None
    for number in heeded_signals():
        # A second one cancels the stop in order: the services are killed.
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    began = time.monotonic()
    with progress("Starting the services…"):
        async with named_port_user():
            await cluster.open()
    found = _running(cluster)
    try:
        _let_find(found)
        async with _console(cluster, watch) if console else nullcontext() as shown:
            took_s = time.monotonic() - began
            _announce(cluster, watch, took_s, "" if shown is None else shown.url)
            return 0 if await _supervise(cluster, ended, restart=restart) else 1
    except asyncio.CancelledError:
        task.uncancel()
        return 0
    finally:
        forget_running(found)
        await _stop(cluster)


def _console(cluster: "ProcessCluster", watch: Watch) -> "UpConsole":
    from semel_cli.local.up_console import UpConsole

    return UpConsole(
        cluster.bootstrap,
        cluster.folder / "logs" / "console.log",
        environment=_tls_options(cluster),
        jaeger="" if watch.jaeger is None else watch.jaeger.ui,
        on_ended=lambda ended: note(f"semel: {ended}\nthe cluster goes on without it"),
    )


def _running(cluster: "ProcessCluster") -> RunningCluster:
    files = cluster.certificates
    return RunningCluster(
        bootstrap=cluster.bootstrap,
        folder=str(cluster.folder),
        pid=os.getpid(),
        started_ms=time.time_ns() // 1_000_000,
        tls_ca=str(files.ca) if files else "",
        tls_cert=str(files.client_certificate) if files else "",
        tls_key=str(files.client_key) if files else "",
    )


def _let_find(cluster: RunningCluster) -> None:
    try:
        write_running(cluster)
    except OSError as error:
        note(
            f"semel: other commands cannot find this cluster ({error}): give them --bootstrap"
            f" {cluster.bootstrap}"
        )


def _announce(cluster: "ProcessCluster", watch: Watch, took_s: float, console: str) -> None:
    ports = watch.ports
    if cluster.mode_before is not None:
        note(
            f"semel: every user could use {cluster.folder} (mode {cluster.mode_before:04o}), and no"
            " longer can"
        )
    if cluster.volume_warning:
        note(f"semel: {cluster.volume_warning}")
    for name in cluster.leftovers:
        note(f"{name} was still running from an earlier `semel up`: it was stopped first")
    table = Table(
        headings=("Service", "Address", "Process", *(["Metrics"] if ports else []), "Log"),
        rows=[
            (
                name,
                cluster.address(name),
                cluster.pid(name),
                *([ports.url(name)] if ports else []),
                str(cluster.log_path(name)),
            )
            for name in cluster.names
        ],
    )
    facts = {"Bootstrap": cluster.bootstrap, "Data": str(cluster.folder), **_tls(cluster)}
    if console:
        facts["Console"] = console
    if watch.jaeger is not None:
        facts["Jaeger"] = watch.jaeger.ui
    if watch.endpoint is not None:
        facts["Traces"] = f"{ENDPOINT}={watch.endpoint}"
    show(Format.TEXT, None, Facts(facts), table)
    note(f"Ready after {took_s:.1f} s. Ctrl-C stops the cluster.")


def _tls(cluster: "ProcessCluster") -> dict[str, str]:
    """Return how programs connect, which have no `semel up` to find."""
    options = _tls_options(cluster)
    if not options:
        return {}
    return {"TLS": " ".join(f"{name}={path}" for name, path in options.items())}


def _tls_options(cluster: "ProcessCluster") -> dict[str, str]:
    """Return the variables that let a command connect; none, if the cluster has no TLS."""
    files = cluster.certificates
    if files is None:
        return {}
    return {
        "SEMEL_TLS_CA": str(files.ca),
        "SEMEL_TLS_CERT": str(files.client_certificate),
        "SEMEL_TLS_KEY": str(files.client_key),
    }


async def _supervise(
    cluster: "ProcessCluster", ended: "asyncio.Queue[Ended]", *, restart: bool
) -> bool:
    """Report services that end by themselves and start them again, until it is hopeless."""
    restarts: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RESTARTS_MAX))
    while True:
        end = await ended.get()
        note(f"semel: {end}")
        before = restarts[end.name]
        hopeless = len(before) == RESTARTS_MAX and time.monotonic() - before[0] < RESTARTS_WINDOW_S
        if not restart or hopeless:
            reason = f" for the {len(before) + 1}th time" if restart else ""
            note(f"semel: {end.name} ended{reason}: the cluster is stopped")
            return False
        before.append(time.monotonic())
        if await _start_again(cluster, end.name):
            note(f"{end.name} was started again")
        else:
            ended.put_nowait(end)


async def _start_again(cluster: "ProcessCluster", name: str) -> bool:
    """Start a service; answers whether it runs. Other services go on, whatever stops this one."""
    from semel_local.errors import FolderError

    try:
        await cluster.start(name, wait=False)
    except (FolderError, OSError) as error:  # A full disk, for example.
        note(f"semel: {error}")
        await asyncio.sleep(RESTART_PAUSE_S)
    return cluster.pid(name) is not None


async def _stop(cluster: "ProcessCluster") -> None:
    note("Stopping…")
    for name, status in (await cluster.stop()).items():
        if status == -signal.SIGKILL:
            note(f"semel: {name} did not stop in time, and was killed")
        elif status != 0:
            note(f"semel: {name} ended with status {status}: see {cluster.log_path(name)}")
    note(f"Stopped. `{_command(cluster.folder)}` starts it again, with its data.")


def _command(folder: Path) -> str:
    """Return what starts the cluster in a folder."""
    try:
        if folder == data_folder().resolve():
            return "semel up"
    except OSError:
        pass  # Without --data, the folder would be unknown.
    return f"semel up --data {shlex.quote(str(folder))}"

"""One node of Kafka on this machine, in KRaft mode, with the settings that a single node needs."""

import asyncio
import os
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from semel_local.ports import free_port, port_range
from semel_local.process import ManagedProcess, tail

_HERE = Path(__file__).parent
_START_TIMEOUT_S = 60.0
_JVM = (
    *("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
"""As Kafka's own scripts start it: see kafka-run-class.sh."""
_STARTED = "Kafka Server started"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What differs between nodes."""

    partitions: int
    """Of a topic that is created by its first use."""
    heap_mib: int = 1_024
    flush_messages: int = (1 << 63) - 1
    """After how many messages of a partition to call fsync. By default Kafka never does; with 1, it
    does after each append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker that runs."""

    bootstrap: str
    pid: int


class KafkaError(Exception):
    """Kafka cannot be had here, or does not start."""


def missing() -> str | None:
    """Return what Kafka needs and is not here; None if all is."""
    absent = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return " and ".join(absent) or None


def jars(profile: str, folder: Path) -> Sequence[Path]:
    """Return the jars of a profile of pom.xml; fetched once. Raises KafkaError."""
    kept = folder / profile
    if not kept.exists():
        fetched = folder / f"{profile}.part"
        maven(
            *("-f", os.fspath(_HERE / "pom.xml"), "-P", profile),
            *("dependency:copy-dependencies", "-DincludeScope=runtime"),
            f"-DoutputDirectory={fetched.absolute()}",
        )
        fetched.rename(kept)
    return sorted(kept.glob("*.jar"))


def maven(*arguments: str) -> None:
    """Run Maven; raises KafkaError with its output."""
    command = ("mvn", "-q", "-B", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KafkaError(f"Maven failed: {' '.join(command)}\n{done.stdout}{done.stderr}")


def class_path(entries: Sequence[Path]) -> str:
    """Return them as Java takes them."""
    return os.pathsep.join(map(os.fspath, entries))


@asynccontextmanager
async def server(
    folder: Path, classpath: Sequence[Path], options: NodeOptions
) -> AsyncIterator[Node]:
    """Run one until the end of the block. Raises KafkaError."""
    port, properties = _prepare(folder, options)
    heap = (f"-Xms{options.heap_mib}m", f"-Xmx{options.heap_mib}m")
    java = ("java", *_JVM, *heap, "-cp", class_path(classpath))
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    form = (*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties))
    formatting = await asyncio.create_subprocess_exec(
        *form, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await formatting.communicate()
    if formatting.returncode:
        raise KafkaError(f"Kafka's storage could not be formatted:\n{said.decode()}")
    process = ManagedProcess(
        "kafka", (*java, "kafka.Kafka", os.fspath(properties)), folder / "kafka.log"
    )
    await process.spawn()
    try:
        await _started(process)
        assert process.pid is not None
        yield Node(bootstrap=f"127.0.0.1:{port}", pid=process.pid)
    finally:
        await process.stop(grace_s=10.0)


async def create_topic(
    node: Node, classpath: Sequence[Path], name: str, *, partitions: int
) -> None:
    """Create a topic before anybody uses it. Raises KafkaError."""
    command = (
        *("java", "-cp", class_path(classpath), "org.apache.kafka.tools.TopicCommand"),
        *("--bootstrap-server", node.bootstrap, "--create", "--topic", name),
        *("--partitions", str(partitions), "--replication-factor", "1"),
    )
    creating = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await creating.communicate()
    if creating.returncode:
        raise KafkaError(f"the topic {name} could not be created:\n{said.decode()}")


def _prepare(folder: Path, options: NodeOptions) -> tuple[int, Path]:
    """Write the settings of a broker; returns its port and their file."""
    folder.mkdir(parents=True)
    port = free_port(port_range())
    controller = free_port(port_range(after=port))
    settings = _settings(options, port=port, controller=controller, logs=folder / "logs")
    properties = folder / "server.properties"
    properties.write_text(settings, "utf-8")
    return port, properties


def _settings(options: NodeOptions, *, port: int, controller: int, logs: Path) -> str:
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={logs}
num.partitions={options.partitions}
log.flush.interval.messages={options.flush_messages}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


async def _started(process: ManagedProcess) -> None:
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            while _STARTED not in process.log_path.read_text("utf-8", "replace"):
                if not process.running:
                    break
                await asyncio.sleep(0.1)
            else:
                return
    except TimeoutError:
        pass
    raise KafkaError(f"Kafka did not start:\n{tail(process.log_path)}")

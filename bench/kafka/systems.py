"""The systems under load: Semel's services, and nodes of Kafka, each ready for its clients."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.kafka.cells import System
from bench.kafka_node.server import NodeOptions, class_path, jars, maven, server
from bench.workloads import PARTITIONS
from semel_local import ProcessCluster

_BUILD = Path("build/kafka")
_CLIENT = Path(__file__).parent.parent / "clients" / "java"
_JAVA = ("java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp")
_MAIN = "semel.bench.Main"
_HEAP_MIB = 2_048
NODES: Mapping[System, NodeOptions] = {
    System.KAFKA: NodeOptions(partitions=PARTITIONS, heap_mib=_HEAP_MIB),
    System.KAFKA_FLUSH: NodeOptions(partitions=PARTITIONS, heap_mib=_HEAP_MIB, flush_messages=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A system that is up."""

    bootstrap: str
    pids: Mapping[str, int]
    """Of its processes, by name."""


@asynccontextmanager
async def running(
    systems: Collection[System], folder: Path
) -> AsyncIterator[Mapping[System, Running]]:
    """Run these systems until the end of the block. Raises KafkaError."""
    async with AsyncExitStack() as stack:
        up = {System.SEMEL: await stack.enter_async_context(_semel(folder / "semel"))}
        for system, options in NODES.items():
            if system in systems:
                node = server(folder / system, jars("broker", _BUILD), options)
                started = await stack.enter_async_context(node)
                pids = {"broker": started.pid}
                up[system] = Running(bootstrap=started.bootstrap, pids=pids)
        yield up


@asynccontextmanager
async def _semel(folder: Path) -> AsyncIterator[Running]:
    async with ProcessCluster(folder, brokers=1) as cluster:
        yield Running(bootstrap=cluster.bootstrap, pids=cluster.pids())


def java_client() -> Sequence[str]:
    """Build Kafka's Java client, and return the command that starts it. Raises KafkaError."""
    target = _BUILD.absolute() / "client"
    maven("-f", str(_CLIENT / "pom.xml"), f"-Dtarget={target}", "compile")
    on_path = (target / "classes", *jars("broker", _BUILD))
    return (*_JAVA, class_path(on_path), _MAIN)

"""The scripts of docs/use/from-kafka.md, between a real Kafka and a real Semel.

Kafka and Spark's connector for it come from Maven: `make from-kafka` fetches them, and runs this.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.kafka_node.server import Node, NodeOptions, class_path, create_topic, missing, server

from aiosemel import ColumnBatch, ConsumerOptions, OffsetReset, SemelClient
from semel_local import ProcessCluster
from semel_pipelines.settings import process_environment

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/use/from-kafka.md").read_text("utf-8")
JARS = ROOT / "build/kafka"
PARTITIONS = 3
RECORDS = 300
READ = {0: 40, 1: 0, 2: 100}
"""How far the group is in Kafka, by partition; each has 100 records."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(missing() is not None, reason=f"Apache Kafka needs {missing()}"),
    pytest.mark.skipif(
        not (JARS / "broker").exists() or not (JARS / "connector").exists(),
        reason="Apache Kafka is not there: make from-kafka fetches it",
    ),
]


class Record(NamedTuple):
    """The facts that a copy must keep."""

    partition: int
    value: str


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's scripts as files, by the names in their first lines."""
    folder = tmp_path_factory.mktemp("scripts")
    for script in re.findall(r"```python\n(# (\w+\.py) .*?)```", PAGE, re.DOTALL):
        text, name = script
        (folder / name).write_text(text, "utf-8")
    return folder


def test_the_page_has_all_scripts_that_it_names(scripts: Path) -> None:
    found = {path.name for path in scripts.iterdir()}
    assert found == {"copy_to_semel.py", "copy_to_kafka.py", "move_group.py"}
    assert set(re.findall(r"\w+\.py", PAGE)) == found


async def test_a_topic_and_its_group_move_to_semel_and_the_topic_back(
    scripts: Path, tmp_path: Path
) -> None:
    async with both(tmp_path) as (kafka, semel, client):
        await create_topic(kafka, jars("broker"), "orders", partitions=PARTITIONS)
        await client.admin().create_topic("orders", partitions=PARTITIONS)
        await fill(kafka, "orders", tmp_path)
        copy = ("copy_to_semel.py", kafka.bootstrap, semel, "orders", str(tmp_path / "to-semel"))
        for _ in range(2):  # The second run finds nothing to do.
            await spark(scripts, *copy)
        copied = await read(client, "orders")
        assert [
            Record(each, f"{each}.{at}") for each in range(PARTITIONS) for at in range(100)
        ] == [
            Record(batch.topic_partition.partition, (value or b"").decode())
            for batch in copied
            for value in batch.values
        ]

        positions = tmp_path / "positions.csv"
        positions.write_text("".join(f"orders,{each},{at}\n" for each, at in READ.items()), "utf-8")
        await groups(kafka, "--from-file", str(positions), "--execute")
        exported = await groups(kafka, "--topic", "orders", "--to-current", "--export", "--dry-run")
        positions.write_text(exported, "utf-8")
        await spark(scripts, "move_group.py", semel, "billing", str(positions))
        assert await next_values(client, "billing") == {0: b"0.40", 1: b"1.0", 2: None}

        back = ("copy_to_kafka.py", semel, kafka.bootstrap, "orders", str(tmp_path / "to-kafka"))
        await spark(scripts, *back)
        assert await count(kafka, "orders") == 2 * RECORDS


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[tuple[Node, str, SemelClient]]:
    """Run one node of each, and a client of Semel."""
    options = NodeOptions(partitions=PARTITIONS, heap_mib=512)
    async with (
        server(folder / "kafka", jars("broker"), options) as kafka,
        ProcessCluster(folder / "semel", brokers=1) as semel,
        SemelClient(semel.bootstrap) as client,
    ):
        yield kafka, semel.bootstrap, client


async def fill(kafka: Node, topic: str, folder: Path) -> None:
    """Send records to named partitions, each partition in order, with Kafka's own tool."""
    program = """
        import org.apache.kafka.clients.producer.*;
        import org.apache.kafka.common.serialization.StringSerializer;
        import java.util.Map;

        class Fill {
            public static void main(String[] args) {
                var settings = Map.<String, Object>of("bootstrap.servers", args[0]);
                var text = new StringSerializer();
                try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
                    for (int at = 0; at < 100; at++)
                        for (int partition = 0; partition < 3; partition++)
                            producer.send(new ProducerRecord<>(
                                args[1], partition, "key" + at, partition + "." + at));
                }
            }
        }
    """
    source = folder / "Fill.java"
    source.write_text(program, "utf-8")
    await run("java", "-cp", class_path(jars("broker")), str(source), kafka.bootstrap, topic)


async def groups(kafka: Node, *arguments: str) -> str:
    """Do what `kafka-consumer-groups.sh --reset-offsets` does, and return what it prints."""
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = ("java", "-cp", class_path(jars("broker")), tool, "--reset-offsets")
    group = ("--bootstrap-server", kafka.bootstrap, "--group", "billing")
    return await run(*command, *group, *arguments)


async def count(kafka: Node, topic: str) -> int:
    """Return how many records a topic of Kafka has, with Kafka's own tool."""
    tool = ("java", "-cp", class_path(jars("broker")), "org.apache.kafka.tools.GetOffsetShell")
    said = await run(*tool, "--bootstrap-server", kafka.bootstrap, "--topic", topic)
    return sum(int(line.rpartition(":")[2]) for line in said.splitlines() if ":" in line)


async def read(client: SemelClient, topic: str) -> list[ColumnBatch]:
    """Return all of a topic of Semel, by partition and offset."""
    options = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    partitions = [(topic, each) for each in range(PARTITIONS)]
    found: list[ColumnBatch] = []
    async with client.consumer(options=options) as consumer:
        consumer.assign(partitions)
        for partition, end in (await consumer.end_offsets(partitions)).items():
            while await consumer.position(partition) < end:
                for batches in (await consumer.poll_columns()).values():
                    found += batches
    return sorted(found, key=lambda batch: (batch.topic_partition, batch.offsets[0]))


async def next_values(client: SemelClient, group: str) -> Mapping[int, bytes | None]:
    """Return the record at the position of a group, by partition; None: the group is at the end."""
    positions = await client.admin().list_consumer_group_offsets(group)
    records = {
        (batch.topic_partition, offset): value
        for batch in await read(client, "orders")
        for offset, value in zip(batch.offsets, batch.values, strict=True)
    }
    return {
        each.partition: records.get((each, at.offset))
        for each, at in positions.items()
        if at is not None
    }


async def spark(scripts: Path, script: str, *arguments: str) -> None:
    """Run a script as `spark-submit` does, with the jars that `--packages` would bring."""
    connector = ",".join(map(str, jars("connector")))
    submit = f"--master local[2] --conf spark.ui.enabled=false --jars {connector} pyspark-shell"
    environment = {**os.environ, **process_environment("local"), "PYSPARK_SUBMIT_ARGS": submit}
    await run(sys.executable, str(scripts / script), *arguments, environment=environment)


async def run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command, and return its output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await process.communicate()
    assert process.returncode == 0, said.decode() + complained.decode()
    return said.decode()


def jars(profile: str) -> Sequence[Path]:
    """Return what Maven has brought."""
    return sorted((JARS / profile).glob("*.jar"))

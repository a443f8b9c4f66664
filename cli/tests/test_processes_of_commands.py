"""Commands as processes: started, interrupted, refused."""

import asyncio
import fcntl
import json
import os
import re
import signal
import sys
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from command_process import DEADLINE_S, SEMEL, Up, command

from aiosemel import ConsumerOptions, OffsetReset, SemelClient, TransactionState
from semel_local import LocalCluster
from semel_runtime.testing.collector import collecting
from semel_runtime.testing.default_signals import default_signals

pytestmark = pytest.mark.slow

STOPPING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PIPE_BYTES = 65_536
"""A pipe that holds so much is full."""


@pytest.fixture(autouse=True)
def _default_signals() -> Iterator[None]:
    with default_signals():
        yield


@asynccontextmanager
async def semel_up(folder: Path, *options: str) -> AsyncIterator[Up]:
    async with command("up", "--data", str(folder), "--port", "0", *options) as up:
        await up.until("Ready after")
        yield up


def service_pid(folder: Path, name: str) -> int:
    return int(re.findall(rf'"{name}": (\d+)', (folder / "semel.pids").read_text())[0])


@pytest.mark.timeout(150)
async def test_a_cluster_is_found_restarts_what_dies_and_stops_with_ctrl_c(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    async with semel_up(folder) as up:
        async with command("topics", "list") as found:
            assert await found.ends() == 0
        async with command("up", "--data", str(folder), "--port", "0") as second:
            assert await second.ends() == 1
            assert "running in" in second.said[-1]
        os.kill(service_pid(folder, "broker-0"), signal.SIGKILL)
        await up.until("broker-0 ended (killed by SIGKILL)")
        await up.until("broker-0 was started again")
        up.process.send_signal(signal.SIGINT)
        assert await up.ends() == 0
        again = f"`semel up --data {folder}` starts it again, with its data."
        assert up.said[-1].splitlines()[-1] == f"Stopped. {again}"
    async with command("topics", "list") as lost:
        assert await lost.ends() == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--otlp", "localhost"), "--otlp is 'localhost', not a URL like http://127.0.0.1:4317"),
        (("--jaeger", "--otlp", "http://127.0.0.1:4317"), "give one of them"),
    ],
)
async def test_traces_that_could_go_nowhere_are_refused(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    async with command("up", "--data", str(tmp_path / "cluster"), *options) as up:
        assert await up.ends() == 2
    assert sentence in up.said[-1]


async def test_up_says_so_if_there_is_no_jaeger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with command("up", "--data", str(tmp_path / "cluster"), "--jaeger") as up:
        assert await up.ends() == 1
    assert "Jaeger is not on the PATH" in up.said[-1]


@pytest.mark.timeout(150)
async def test_up_and_commands_export_their_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cluster"
    with collecting() as collector:
        async with command(
            "up", "--data", str(folder), "--port", "0", "--otlp", collector.endpoint
        ) as up:
            await up.until("Ready after")
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
            async with command("topics", "create", "orders") as create:
                assert await create.ends() == 0
            async with command("produce", "orders", "--transactional-id", "payer") as produce:
                assert produce.process.stdin is not None
                produce.process.stdin.write(b"pizza\n")
                produce.process.stdin.write_eof()
                assert await produce.ends() == 0
            up.process.send_signal(signal.SIGINT)
            assert await up.ends() == 0
    assert {"semel", "semel-coordinator", "semel-broker"} <= collector.services()


@pytest.mark.timeout(150)
async def test_a_cluster_with_tls_is_found_with_its_certificates(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    async with semel_up(folder, "--tls"):
        async with command("topics", "create", "secured") as created:
            assert await created.ends() == 0
        async with command("produce", "secured", "--transactional-id", "secured") as produce:
            assert produce.process.stdin is not None
            produce.process.stdin.write(b"one\n")
            produce.process.stdin.close()
            assert await produce.ends() == 0
        async with command("demo", "income", "--timeout", "0") as demo:
            assert await demo.ends() == 1
        assert "not all income is there" in demo.said[-1]
        async with command("--no-tls", "topics", "list") as plain:
            assert await plain.ends() == 1
        assert "speaks TLS, and this client does not: connect with TLS" in plain.said[-1]
        async with command("--tls-ca", str(folder / "tls" / "ca.pem"), "topics", "list") as nobody:
            assert await nobody.ends() == 1
        keys = [path for path in (folder / "tls").iterdir() if path.suffix == ".key"]
        assert {path.name for path in keys} == {"client.key", "services.key"}
        assert {path.stat().st_mode & 0o077 for path in keys} == {0}
        said = "".join(path.read_text() for path in (folder / "logs").iterdir())
        assert "PRIVATE" not in said


async def test_a_command_that_is_given_no_input_says_so(bootstrap: str) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("orders", exist_ok=True)
    closed = ("sh", "-c", 'exec "$@" <&-', "sh", *SEMEL)
    process = await asyncio.create_subprocess_exec(
        *closed, "produce", "orders", "--bootstrap", bootstrap, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode().splitlines()[1:] == [
        "semel: the input cannot be read: there is none, it was closed"
    ]


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (">/dev/full", "semel: standard output cannot be written: No space left on device"),
        (">&-", "semel: standard output is closed: there is nowhere to write to"),
    ],
)
@pytest.mark.parametrize("arguments", ["topics list", "consume full --from-beginning"])
async def test_an_output_that_takes_nothing_is_said_in_a_sentence(
    bootstrap: str, arguments: str, output: str, sentence: str
) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("full", partitions=1, exist_ok=True)
        await client.producer().send_and_wait("full", b"one")
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f'exec "$@" {output}', "sh", *SEMEL, *arguments.split()),
        *("--bootstrap", bootstrap),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        _, said = await process.communicate()
    assert (process.returncode, said.decode().splitlines()) == (1, [sentence])


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (">/dev/full", "No space left on device"),
        (">&-", "standard output is closed: there is nowhere to write to"),
    ],
)
@pytest.mark.parametrize("arguments", ["--version", "--help", "topics --help", ""])
async def test_help_that_cannot_be_written_is_said_in_a_sentence(
    arguments: str, output: str, sentence: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f'exec "$@" {output}', "sh", *SEMEL, *arguments.split()),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        _, said = await process.communicate()
    [line] = said.decode().splitlines()
    assert process.returncode == 1
    assert line.startswith("semel: ")
    assert line.endswith(sentence)


async def test_a_cluster_that_others_cannot_find_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    async with semel_up(tmp_path / "cluster") as up:
        assert any("other commands cannot find this cluster" in line for line in up.said)
        up.process.send_signal(signal.SIGINT)
        assert await up.ends() == 0


async def test_a_cluster_stops_in_order_without_a_reader_of_its_output(tmp_path: Path) -> None:
    # As with `semel up 2>&1 | tee log`, which Ctrl-C ends together, and a terminal that is closed.
    reader, writer = os.pipe()
    up = await asyncio.create_subprocess_exec(
        *(*SEMEL, "up", "--data", str(tmp_path), "--port", "0"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=writer,
    )
    os.close(writer)
    async with asyncio.timeout(DEADLINE_S):
        with os.fdopen(reader) as said:
            while "Ready after" not in await asyncio.to_thread(said.readline):
                pass
        names = ("coordinator-0", "broker-0", "group-coordinator-0")
        services = [service_pid(tmp_path, name) for name in names]
        up.send_signal(signal.SIGINT)
        status = await up.wait()
    left = (tmp_path / "semel.pids").exists()
    for pid in services if left else ():
        os.kill(pid, signal.SIGKILL)
    assert (status, left) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "status"), [("topics list --bootstrap nobody", 2), ("produce untold", 0)]
)
async def test_an_exit_status_holds_without_a_reader_of_the_reason(
    bootstrap: str, arguments: str, status: int
) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("untold", exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'echo one | "$@" 2>/dev/full', "sh", *SEMEL, *arguments.split()),
        env={**os.environ, "SEMEL_BOOTSTRAP": bootstrap},
    )
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == status


async def test_consume_ends_when_its_reader_has_gone(bootstrap: str) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("left", partitions=1)
        await client.producer().send_and_wait("left", b"one")
    head = ("sh", "-c", '"$@" | head -n 1', "sh", *SEMEL)
    process = await asyncio.create_subprocess_exec(
        *head, "consume", "left", "--from-beginning", "--bootstrap", bootstrap,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(DEADLINE_S):
        written, said = await process.communicate()
    assert (written, said) == (b"one\n", b"")


@pytest.mark.parametrize("number", STOPPING)
async def test_consume_can_be_ended_while_its_reader_does_not_read(
    bootstrap: str, number: signal.Signals
) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("unread", partitions=1, exist_ok=True)
        await client.producer().send_and_wait("unread", bytes(PIPE_BYTES * 2))
    reader, writer = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *SEMEL, "consume", "unread", "--from-beginning", "--bootstrap", bootstrap, stdout=writer
    )
    os.close(writer)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while waiting_bytes(reader) < PIPE_BYTES:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0)
            process.send_signal(number)
            assert await process.wait() == 0
    finally:
        os.close(reader)


def waiting_bytes(pipe: int) -> int:
    """Return how many unread bytes are in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("number", STOPPING)
async def test_a_signal_aborts_the_transaction_that_the_input_is(
    bootstrap: str, number: signal.Signals
) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("cut", partitions=1, exist_ok=True)
        arguments = ("produce", "cut", "--transactional-id", "cut", "--bootstrap", bootstrap)
        async with command(*arguments) as produce:
            assert produce.process.stdin is not None
            produce.process.stdin.write(b"one\ntwo\n")
            await in_state(client, "cut", TransactionState.ONGOING)
            produce.process.send_signal(number)
            assert await produce.ends() == 130
        assert "The transaction is aborted: 2 records read, none visible" in produce.said[-1]
        await in_state(client, "cut", TransactionState.EMPTY)


@pytest.mark.parametrize("options", [(), ("--transactional-id", "bad-line")], ids=["each", "one"])
async def test_a_bad_line_in_a_long_input_is_one_sentence(
    bootstrap: str, options: tuple[str, ...]
) -> None:
    async with SemelClient(bootstrap) as client:
        await client.admin().create_topic("bad-line", exist_ok=True)
    lines = b'{"value": "good"}\n', b"bad\n", b'{"value": "unread"}\n' * 300_000
    arguments = ("produce", "bad-line", "--format", "json", "--bootstrap", bootstrap, *options)
    async with command(*arguments) as produce, asyncio.timeout(DEADLINE_S):
        _, said = await produce.process.communicate(b"".join(lines))
    assert produce.process.returncode == 1
    *stored, sentence = said.decode().splitlines()
    assert stored == ([] if options else ["1 record stored in bad-line"])
    assert sentence.startswith("semel: line 2 of the input is no record: it is not JSON")


async def test_many_records_that_could_not_be_stored_are_told_once(bootstrap: str) -> None:
    async with SemelClient(bootstrap) as client:
        options = {"cleanup.policy": "compact"}
        await client.admin().create_topic("keyed", partitions=1, configs=options)
    arguments = ("produce", "keyed", "--bootstrap", bootstrap)
    async with command(*arguments) as produce, asyncio.timeout(DEADLINE_S):
        _, said = await produce.process.communicate(b"no key\n" * 30_000)
    assert produce.process.returncode == 1
    stored, lost = said.decode().splitlines()
    assert stored == "0 records stored in keyed"
    assert "records could not be stored: record 0 of a batch has no key" in lost


async def produced_around_a_deletion(bootstrap: str, topic: str) -> list[str]:
    """Produce a record, delete the topic, and produce another record and a line that is none."""
    async with SemelClient(bootstrap) as client, asyncio.timeout(DEADLINE_S):
        await client.admin().create_topic(topic, partitions=1)
        from_the_start = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
        reader = client.consumer(options=from_the_start)
        reader.assign([(topic, 0)])
        arguments = ("produce", topic, "--format", "json", "--bootstrap", bootstrap)
        async with command(*arguments) as produce:
            assert produce.process.stdin is not None
            produce.process.stdin.write(b'{"value": "one"}\n')
            while not await reader.poll(timeout_ms=1_000):
                pass
            await client.admin().delete_topic(topic)
            produce.process.stdin.write(b'{"value": "two"}\nbad\n')
            assert await produce.ends() == 1
    return produce.said[-1].splitlines()


async def test_records_that_could_not_be_stored_are_told_beside_a_bad_line(bootstrap: str) -> None:
    told: list[str] = []
    for number in range(20):
        told = await produced_around_a_deletion(bootstrap, f"torn-{number}")
        if told[0] != f"2 records stored in torn-{number}":
            break  # Else the broker has taken the record before it heard of the deletion.
    stored, lost, bad = told
    assert stored == f"1 record stored in torn-{number}"
    assert lost.startswith("semel: 1 record could not be stored: ")
    assert bad.startswith("semel: line 3 of the input is no record: ")


async def test_a_move_that_waits_is_listed_and_given_up() -> None:
    async with LocalCluster(group_coordinators=2) as cluster, cluster.client() as client:
        await cluster.stop_service("group-coordinator-1")
        topic, place = "__consumer_offsets", ("--bootstrap", cluster.bootstrap)
        await client.admin().moves.alter_partition_reassignments({(topic, 0): 1})
        assert await said("cluster", "moves", "--format", "json", *place) == {
            "partitions": [
                {
                    "topic": topic,
                    "partition": 0,
                    "role": "group-coordinator",
                    "leader_id": 0,
                    "moving_to": 1,
                }
            ]
        }
        await said("topics", "move", topic, "--cancel", "--format", "json", *place)
        assert await said("cluster", "moves", "--format", "json", *place) == {"partitions": []}


async def said(*arguments: str) -> object:
    """Run a command that succeeds; returns the JSON that it writes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*SEMEL, *arguments, stdout=pipe)
    async with asyncio.timeout(DEADLINE_S):
        written, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(written)


async def in_state(client: SemelClient, transactional_id: str, state: TransactionState) -> None:
    """Wait until a transactional id is in a state."""
    async with asyncio.timeout(DEADLINE_S):
        while state not in {
            transaction.state
            for transaction in await client.admin().list_transactions()
            if transaction.transactional_id == transactional_id
        }:
            pass

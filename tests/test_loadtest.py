"""The load test without ghz: its configurations are ones that ghz reads, its check has teeth."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from loadtest.__main__ import main
from loadtest.check import Report, check
from loadtest.effects import Effects
from loadtest.page import page
from loadtest.prepare import Preparation
from loadtest.requests import RECORDS_PER_CALL, produce_request
from loadtest.scenarios import DATA, ROOT, SCENARIOS, Run, read_config, read_runs
from loadtest.target import TOPIC, find_target

from aiosemel import SemelClient
from semel.broker.v1.broker_pb2_grpc import BrokerServiceStub
from semel.coordinator.v1 import cluster_pb2
from semel_local import LocalCluster

# Of ghz 0.121.0; it says nothing about other keys, and does not do what they ask.
KEYS = set((ROOT / "loadtest" / "ghz-keys.txt").read_text("utf-8").split())
NAMES = sorted(path.stem for path in SCENARIOS.glob("*.json"))
RUN = Run(scenario="fetch", concurrency=4, calls=100, p50_ms=10, p99_ms=50, rate_min=100)
GOOD: Report = {
    "count": 100,
    "total": 500_000_000,
    "endReason": "normal",
    "errorDistribution": {},
    "statusCodeDistribution": {"OK": 100},
    "latencyDistribution": [
        {"percentage": 50, "latency": 9_000_000},
        {"percentage": 99, "latency": 49_000_000},
    ],
}


def request_class(config: dict[str, object]) -> type[Message]:
    """Return the request that ghz finds in the descriptors for a configuration's call."""
    files = descriptor_pb2.FileDescriptorSet.FromString(
        (ROOT / str(config["protoset"])).read_bytes()
    )
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    service, _, method = str(config["call"]).partition("/")
    found = pool.FindServiceByName(service).FindMethodByName(method)
    return message_factory.GetMessageClass(found.input_type)


def test_there_is_a_run_of_every_scenario_at_several_concurrencies() -> None:
    runs = read_runs()
    assert sorted({run.scenario for run in runs}) == NAMES
    assert len({run.name for run in runs}) == len(runs)
    alone = {run.scenario for run in runs if run.streams}
    for name in set(NAMES) - alone:
        assert len({run.concurrency for run in runs if run.scenario == name}) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_ghz_knows_every_key_and_the_descriptors_have_the_call(name: str) -> None:
    config = read_config(name)
    assert set(config) - KEYS == set()
    assert config["name"] == name
    assert config["data-file"] == f"build/loadtest/data/{name}.json"
    assert request_class(config).DESCRIPTOR.full_name.endswith("Request")


def test_a_call_that_is_not_there_is_noticed() -> None:
    with pytest.raises(KeyError):
        request_class(read_config("fetch") | {"call": "semel.broker.v1.BrokerService/Get"})


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_what_is_prepared_is_valid_and_has_its_effect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every request is sent as ghz would send it, those of streams frame by frame."""
    monkeypatch.setattr("loadtest.prepare.DATA", tmp_path)
    async with (
        LocalCluster(brokers=2, coordinators=2) as cluster,
        SemelClient(cluster.bootstrap) as client,
        find_target(cluster.bootstrap) as target,
    ):
        preparation, effects = Preparation(target), Effects(client, target)
        for scenario in dict.fromkeys(run.scenario for run in read_runs()):
            run = replace(RUN, scenario=scenario, calls=1 if scenario.startswith("stream") else 12)
            await preparation.prepare(run)
            await effects.begin(run)
            rows = json.loads((tmp_path / f"{scenario}.json").read_text("utf-8"))
            config = read_config(scenario)
            requests = [ParseDict(row, request_class(config)()) for row in rows]
            assert requests
            await send(target.address(str(config["call"])), str(config["call"]), requests, run)
            assert await effects.check(run, preparation.groups) == [], scenario


async def send(address: str, call: str, requests: list[Message], run: Run) -> None:
    """Make the calls of a run, as ghz does."""
    serialize = type(requests[0]).SerializeToString
    async with grpc.aio.insecure_channel(address) as channel:
        if run.streams:
            stream: grpc.aio.StreamStreamMultiCallable[Message, bytes] = channel.stream_stream(
                f"/{call}", request_serializer=serialize
            )
            assert len([answer async for answer in stream(iter(requests))]) > 0
            return
        unary: grpc.aio.UnaryUnaryMultiCallable[Message, bytes] = channel.unary_unary(
            f"/{call}", request_serializer=serialize
        )
        for number in range(run.calls):
            await unary(requests[number % len(requests)])


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_an_append_that_is_refused_inside_its_answer_is_noticed() -> None:
    async with (
        LocalCluster() as cluster,
        SemelClient(cluster.bootstrap) as client,
        find_target(cluster.bootstrap) as target,
    ):
        effects = Effects(client, target)
        run = replace(RUN, scenario="produce-plain", calls=2)
        await effects.begin(run)
        async with grpc.aio.insecure_channel(target.broker) as channel:
            # There is no such partition: the call succeeds, as far as ghz sees.
            answer = await BrokerServiceStub(channel).Produce(produce_request(target, 9_999))
        assert answer.partitions[0].error.code
        assert await effects.check(run, ()) == [f"0 records, not {2 * RECORDS_PER_CALL}"]


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_markers_that_do_not_come_are_one_more_thing_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loadtest.effects._MARKERS_TIMEOUT_S", 0.2)
    async with (
        LocalCluster() as cluster,
        SemelClient(cluster.bootstrap) as client,
        find_target(cluster.bootstrap) as target,
        client.transactional_producer("open") as producer,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, b"value", partition=target.partitions[0])
        effects, run = Effects(client, target), replace(RUN, scenario="end-txn")
        await effects.begin(run)
        assert await effects.check(run, ()) == ["0 committed records, not 1"]


async def test_an_instance_that_looks_after_nothing_is_named() -> None:
    async with LocalCluster() as cluster, find_target(cluster.bootstrap) as target:
        (name,) = await target.names(cluster_pb2.COORDINATOR_TYPE_TRANSACTION, 1)
        assert name.startswith(f"load-{target.run_id}-")
        elsewhere = replace(target, coordinator="elsewhere:1")
        with pytest.raises(LookupError, match="elsewhere:1 looks after none of 5000 names"):
            await elsewhere.names(cluster_pb2.COORDINATOR_TYPE_TRANSACTION, 1)


def test_data_that_is_no_request_does_not_parse() -> None:
    row = MessageToDict(request_class(read_config("fetch"))(), preserving_proto_field_name=True)
    with pytest.raises(ParseError):
        ParseDict(row | {"fetch_offset": 3}, request_class(read_config("fetch"))())


def test_a_good_report_passes() -> None:
    assert check(GOOD, RUN) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"count": 99}, "99 of 100 calls were made"),
        ({"endReason": "timeout"}, "ended by timeout"),
        ({"statusCodeDistribution": {"OK": 99, "Unavailable": 1}}, "1 calls ended as Unavailable"),
        ({"statusCodeDistribution": {}}, "0 of 100 calls succeeded"),
        ({"errorDistribution": {"rpc error": 2}}, "2 times: rpc error"),
        ({"latencyDistribution": [{"percentage": 50, "latency": 10_100_000}]}, "p50 is 10.1 ms"),
        ({"latencyDistribution": None}, "p99 is inf ms"),
        ({"total": 2_000_000_000}, "50 operations a second are under 100"),
        ({"total": 0}, "0 operations a second"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_fault_fails_the_check(changes: dict[str, object], said: str) -> None:
    report: Any = {**GOOD, **changes}
    wrong = check(report, RUN)
    assert any(said in each for each in wrong), wrong
    assert said in page(RUN, report, [{"latency": 5}], wrong)


def test_without_ghz_no_cluster_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loadtest", "metadata", "--ghz", "/no/ghz"])
    with pytest.raises(SystemExit):
        main()
    assert "--ghz is /no/ghz: there is no such program" in capsys.readouterr().err


def test_the_job_in_a_cluster_runs_files_that_exist() -> None:
    """The image has the folder's layout; the files of the Job exist, and fit the Dockerfile."""
    job = (ROOT / "loadtest" / "k8s" / "job.yaml").read_text("utf-8")
    image = (ROOT / "loadtest" / "k8s" / "Dockerfile").read_text("utf-8")
    words = re.search(r"command: \[(.*)\]", job)
    assert words
    command = [word.strip('"') for word in words[1].split(", ")]
    assert command[:3] == ["python3", "-m", "loadtest"]
    for word in command[3:]:
        assert f'"{word.partition("=")[0]}"' in (ROOT / "loadtest" / "__main__.py").read_text(
            "utf-8"
        )
    home = re.findall(r"WORKDIR (.*)", image)
    assert re.findall(r"workingDir: (.*)", job) == home
    assert f"mountPath: {home[0]}/{DATA.parents[0].parent.relative_to(ROOT)}}}" in job
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    for source, target in re.findall(r"^COPY (\S+) (\S+)$", image, re.MULTILINE):
        assert (ROOT / source).exists()
        assert source.partition("/")[0] in sent
        assert target == f"{home[0]}/{source}"
    ghz = re.findall(r"GHZ_VERSION\s*:?=\s*(\S+)", image + (ROOT / "Makefile").read_text("utf-8"))
    assert len(ghz) == 2
    assert len(set(ghz)) == 1
    for setting in ("runAsNonRoot: true", "readOnlyRootFilesystem: true", "drop: [ALL]"):
        assert setting in job

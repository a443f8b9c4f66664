"""The tests of the examples in other languages that need no toolchain."""

import json
import re

import grpc
import pytest

from foreign.toolchains import LANGUAGES, ROOT, Example
from foreign.trouble import Scripted, Trouble, TroubledCoordinator
from semel.common.v1.participants_pb2 import TransactionResult
from semel.coordinator.v1.transactions_pb2 import EndTxnRequest
from semel_common.error_codes import ErrorClass
from semel_common.record_batches.partitioner import key_hash, partition_for_key
from semel_common.wire.methods import END_TXN, METADATA
from semel_local import LocalCluster

LINES_MAX = 170

examples = pytest.mark.parametrize("example", LANGUAGES, ids=lambda example: example.name)


def texts_of(example: Example) -> dict[str, str]:
    """Return the sources that are written by hand, by the names of the files."""
    paths = (path for pattern in example.sources for path in example.folder.glob(pattern))
    return {path.name: path.read_text("utf-8") for path in paths}


@examples
def test_no_example_is_long(example: Example) -> None:
    lengths = {name: len(text.splitlines()) for name, text in texts_of(example).items()}
    assert lengths
    assert sum(lengths.values()) <= LINES_MAX, lengths


@examples
def test_an_example_knows_classes_of_errors_and_no_reasons(example: Example) -> None:
    named = set(re.findall(r'"(?!SIG)([A-Z][A-Z_]{3,})"', "".join(texts_of(example).values())))
    assert named == {
        each.name
        for each in (
            ErrorClass.RETRIABLE,
            ErrorClass.REFRESH_RETRIABLE,
            ErrorClass.ABORTABLE_TRANSACTION,
            ErrorClass.APPLICATION_RECOVERABLE,
        )
    }


def test_versions_are_locked_and_name_no_registry() -> None:
    typescript = ROOT / "examples" / "typescript"
    lock = json.loads((typescript / "package-lock.json").read_text("utf-8"))
    assert [name for name, each in lock["packages"].items() if "resolved" in each] == []
    declared = json.loads((typescript / "package.json").read_text("utf-8"))
    for version in (declared["dependencies"] | declared["devDependencies"]).values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), version
    assert "google.golang.org/grpc v" in (ROOT / "examples" / "go" / "go.sum").read_text("utf-8")
    pom = (ROOT / "examples" / "java" / "pom.xml").read_text("utf-8")
    versions = re.findall(r"<(?:[\w.]+\.)?version>(.*?)</", pom)
    assert len(versions) > pom.count("<plugin>")
    exact = re.compile(r"\d+(\.\d+)*|\$\{\w+\.version\}")
    assert [each for each in versions if not exact.fullmatch(each)] == []


def end_txn(epoch: int) -> bytes:
    """Return a commit of an id that is not there."""
    commit = TransactionResult.TRANSACTION_RESULT_COMMIT
    return EndTxnRequest(
        transactional_id="nobody", producer_id=1, producer_epoch=epoch, result=commit
    ).SerializeToString()


def unary(channel: grpc.aio.Channel, path: str) -> "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]":
    """Return a call whose messages are bytes."""
    return channel.unary_unary(path)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_commit_is_lost_as_the_script_says_and_its_repeat_passes() -> None:
    async def nothing() -> None:
        raise AssertionError

    script = Scripted([Trouble.LOST_REQUEST, Trouble.LOST_ANSWER])
    async with LocalCluster() as cluster:
        troubled = TroubledCoordinator(cluster.bootstrap, script, nothing)
        await troubled.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{troubled.port}") as channel:
                assert await unary(channel, METADATA.path)(b"")
                call = unary(channel, END_TXN.path)
                with pytest.raises(grpc.aio.AioRpcError, match="the request is lost"):
                    await call(end_txn(0))
                # The repeat reaches the coordinator, whose error comes back with its details.
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call(end_txn(0))
        finally:
            await troubled.stop()
    details = dict(refused.value.trailing_metadata() or ())["grpc-status-details-bin"]
    assert b"INVALID_PRODUCER_ID_MAPPING" in bytes(details)
    assert script.done == [Trouble.LOST_REQUEST]


def test_the_page_for_clients_says_what_to_do_about_every_class_of_errors() -> None:
    page = (ROOT / "docs" / "use" / "clients.md").read_text("utf-8")
    named = re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)
    classes = [each.name for each in ErrorClass]
    assert [name for name in named if name in classes] == classes


def test_the_page_for_clients_has_the_hashes_of_keys() -> None:
    page = (ROOT / "docs" / "use" / "clients.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:`(.*?)`|\(empty\)).* \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for key, hashed, partition in rows:
        assert key_hash(key.encode()) == int(hashed), key
        assert partition_for_key(key.encode(), 10) == int(partition), key

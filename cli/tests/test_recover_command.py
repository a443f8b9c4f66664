"""`semel recover`, as far as it needs no volume: what its command line may ask for."""

from pathlib import Path

import pytest
from command_line import CommandLine, Ran


@pytest.fixture
def recover(tmp_path: Path) -> "Recover":
    return Recover(tmp_path)


class Recover:
    """Call it with an instance and options; no cluster was started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, name: str, *options: str, status: int, bootstrap: str = "") -> Ran:
        semel = CommandLine({"SEMEL_BOOTSTRAP": bootstrap})
        return semel(
            *("recover", name, "--data", str(self._folder / name), "--reason", "a test", *options),
            status=status,
        )


def test_without_a_cluster_it_is_said_how_to_name_one(recover: Recover) -> None:
    refused = recover("broker-0", "--dry-run", status=2).err
    assert refused.startswith("semel: which cluster?")
    assert "--metadata-from coordinator-0=FOLDER" in refused
    assert "Traceback" not in refused


def test_a_wrong_command_line_is_refused_before_any_question(recover: Recover) -> None:
    assert "Is broker-0 stopped" not in recover("broker-0", status=2).err


@pytest.mark.parametrize("given", ["broker-0", "broker-0=", "=folder"])
def test_metadata_come_from_an_instance_and_its_folder(recover: Recover, given: str) -> None:
    assert recover("coordinator-0", "--metadata-from", given, "--yes", status=2).err


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("coordinator-0", ("--bootstrap", "127.0.0.1:1"), "--bootstrap has no use"),
        (
            "broker-0",
            ("--bootstrap", "127.0.0.1:1", "--metadata-from", "coordinator-0=folder"),
            "--bootstrap has no use",
        ),
        ("broker-0", ("--metadata-from", "broker-0=folder"), "the one that has forgotten"),
        ("broker-0", ("--partial",), "--partial has no use"),
    ],
)
def test_options_that_have_no_use_are_refused(
    recover: Recover, name: str, options: tuple[str, ...], sentence: str
) -> None:
    refused = recover(name, "--yes", *options, status=2, bootstrap="127.0.0.1:1").err
    assert sentence in refused


def test_an_environment_for_other_commands_does_not_count(recover: Recover) -> None:
    refused = recover("coordinator-0", "--yes", status=1, bootstrap="127.0.0.1:1").err
    assert "--metadata-from NAME=FOLDER" in refused


def test_a_user_without_a_name_may_recover(
    recover: Recover, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert "--metadata-from" in recover("coordinator-0", "--yes", status=1).err

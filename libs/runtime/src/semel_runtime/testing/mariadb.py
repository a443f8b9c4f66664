"""A real MariaDB for tests: one server on the loopback interface, where its programs are installed.

Two runs of tests share nothing: each server has a folder and a port of its own. As PostgreSQL's,
its programs run as the user ``nobody`` if the caller is root.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

from semel_runtime.testing.postgres_programs import (
    claim_port,
    execute,
    give,
    identity,
    new_folder,
)

USER = "semel"
PASSWORD = "of/tests:only@"  # noqa: S105 - of tests only
"""Has what must be quoted in a URL."""
START_TIMEOUT_S = 120

_SERVER_FOLDERS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"
"""Not all are on the paths of users."""
_SETTINGS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--aria-pagecache-buffer-size=8M",
    "--key-buffer-size=1M",
    "--character-set-server=utf8mb4",
)
_POLL_S = 0.05


def missing_program() -> str | None:
    """Return which program of MariaDB is not installed; None: a server can be started."""
    return next((name for name in ("mariadbd", "mariadb-install-db") if not _found(name)), None)


class MariadbServer:
    """One server. Blocks; `with` makes, starts and ends it.

    ::

        with MariadbServer() as server:
            server.url("mysql")
            server.kill()
            server.start()
    """

    def __init__(self) -> None:
        """Claim the port."""
        self._port_claim = claim_port()
        self.port: int = self._port_claim.getsockname()[1]
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def url(self, database: str) -> str:
        """Return the address of a database, with a user and its password."""
        return f"mysql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> Self:
        """Make the folder and start the server."""
        self._folder = new_folder("semel-mariadb-")
        try:
            self._make()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and leave nothing."""
        self.close()

    def start(self) -> None:
        """Start it; returns when it takes connections. Raises OSError with its last words."""
        user = identity()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - kill closes it
        self._process = subprocess.Popen(
            (
                _program("mariadbd"),
                "--no-defaults",
                f"--datadir={self._folder / 'data'}",
                f"--port={self.port}",
                f"--socket={self._folder / 'socket'}",
                f"--pid-file={self._folder / 'pid'}",
                f"--tmpdir={self._folder}",
                f"--init-file={self._folder / 'init.sql'}",
                *_SETTINGS,
            ),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd="/",
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._greets():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._log.seek(0)
                words = self._log.read().decode(errors="replace")[-2000:]
                self.kill()
                raise OSError(f"MariaDB does not start:\n{words}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill its process as ``kill -9`` does. It may have ended already."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def close(self) -> None:
        """Stop it, leave its port to others, and remove its folder."""
        self.kill()
        self._port_claim.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self) -> None:
        execute(
            (
                _program("mariadb-install-db"),
                "--no-defaults",
                f"--datadir={self._folder / 'data'}",
                f"--tmpdir={self._folder}",
                "--skip-test-db",
                "--skip-name-resolve",
            )
        )
        init = self._folder / "init.sql"  # Runs at each start; one statement a line.
        init.write_text(
            f"CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        give(init)

    def _greets(self) -> bool:
        """Whether it sends the first packet of a connection."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                return bool(probe.recv(1))
        except OSError:
            return False


def _found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=_SERVER_FOLDERS)


def _program(name: str) -> str:
    found = _found(name)
    assert found is not None, "the caller has asked missing_program"
    return found

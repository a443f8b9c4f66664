"""A real PostgreSQL for tests: a primary and two synchronous standbys on the loopback interface.

Two runs of tests share nothing: each server has a folder, a port and memory of its own, and the
shared memory of its processes lies in its folder. ``postgres_programs`` has the programs and the
user that runs them.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psutil

from semel_runtime.testing.postgres_programs import claim_port, execute, give, new_folder, run

PASSWORD = "of/tests:only@"  # noqa: S105 - of tests only
"""Has what must be quoted in a URL."""

_STANDBY_SIGNAL = "standby.signal"
"""The file that makes a server a standby."""

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 64MB
huge_pages = off
dynamic_shared_memory_type = mmap
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
        self._port_claim = claim_port()
        self.port: int = self._port_claim.getsockname()[1]

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
        try:
            run("pg_ctl", "start", "-w", "-t", "180", "-D", self.folder, "-l", log, "-o", options)
        except subprocess.CalledProcessError as error:
            error.add_note(execute(("tail", "-n", "20", log)))
            raise

    def start_if_stopped(self) -> None:
        """Start it unless it runs. What a killed one has left does not count as running."""
        with socket.socket() as probe:
            stopped = probe.connect_ex(("127.0.0.1", self.port)) != 0
        if stopped:
            self.start()

    def stop(self) -> None:
        """Stop it at once, as a crash would. It may have stopped already."""
        if (self.folder / "postmaster.pid").exists() and psutil.pid_exists(self.pid):
            run("pg_ctl", "stop", "-w", "-D", self.folder, "-m", "immediate")

    def close(self) -> None:
        """Stop it, and leave its port to others."""
        self.stop()
        self._port_claim.close()

    def kill(self) -> None:
        """Kill its main process as ``kill -9`` does; returns when the others have ended too."""
        main = psutil.Process(self.pid)
        others = main.children(recursive=True)
        main.kill()
        psutil.wait_procs([main, *others])

    def pause(self) -> None:
        """Stop all its processes. Messages to it wait."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let its processes go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        main = psutil.Process(self.pid)
        for process in (main, *main.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # It has ended since.
                process.send_signal(number)

    def set(self, line: str) -> None:
        """Add to its configuration, which is read when it starts, and at `reload`."""
        with (self.folder / "postgresql.conf").open("a") as configuration:
            configuration.write(f"{line}\n")

    def reload(self) -> None:
        """Let it read its configuration again."""
        run("pg_ctl", "reload", "-D", self.folder)

    def follow(self, primary: "PostgresServer") -> None:
        """Be a standby of this primary, from the next start or `reload` on."""
        self.set(f"primary_conninfo = '{primary.replication_source()}'")

    def replication_source(self) -> str:
        """Return from where a standby gets what it writes."""
        return f"host=127.0.0.1 port={self.port} user=postgres password={PASSWORD}"

    def received(self) -> int:
        """Return up to where a standby has the log of its primary on its disk."""
        query = (
            "SELECT pg_wal_lsn_diff(greatest("
            "pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')"
        )
        return int(run("psql", "-AtX", "-d", self.url(), "-c", query))

    def promote(self) -> None:
        """Let a standby become a primary; returns when it is one."""
        run("pg_ctl", "promote", "-w", "-D", self.folder)

    def copy(self, primary: "PostgresServer") -> None:
        """Become a standby of this running primary; drop the earlier content."""
        shutil.rmtree(self.folder)
        source = primary.replication_source()
        run("pg_basebackup", "-D", self.folder, "-d", source, "-c", "fast", "--no-sync")
        self.follow(primary)
        execute(("touch", self.folder / _STANDBY_SIGNAL))


class PostgresCluster:
    """A primary, and standbys of which any one has to confirm each commit. Blocks; `with` ends it.

    ::

        with PostgresCluster() as cluster:
            cluster.primary.url()
            cluster.standbys[0].stop()
    """

    def __init__(self, *, standbys: int = 2) -> None:
        """Claim the port of the primary."""
        self._standby_count = standbys
        self._folder = Path()
        self.primary = PostgresServer(Path(), name="primary")
        self.standbys: Sequence[PostgresServer] = ()

    @property
    def servers(self) -> Sequence[PostgresServer]:
        """All servers, whatever they are now."""
        return (self.primary, *self.standbys)

    def url(self) -> str:
        """Return where the primary is, whichever of the servers that is or will be."""
        servers = sorted(self.servers, key=lambda server: server.port)
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        return self.primary.url().replace(f"127.0.0.1:{self.primary.port}", hosts)

    def __enter__(self) -> Self:
        """Make and start all servers."""
        self._folder = new_folder("semel-postgres-")
        self.primary.folder = self._folder / "primary"
        try:
            self._make_primary()
            self.standbys = [self._copy_standby(number) for number in range(self._standby_count)]
            if self.standbys:
                names = ", ".join(server.name for server in self.servers)
                for server in self.servers:  # The primary does not count itself.
                    server.set(f"synchronous_standby_names = 'ANY 1 ({names})'")
            for server in self.servers:
                server.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all, and leave nothing."""
        self.close()

    def fail_over(self) -> PostgresServer:
        """Kill the primary, and promote the standby that has most; returns the killed one.

        All standbys must run: one that cannot be asked may be the only one that has confirmed
        something.
        """
        killed = self.primary
        killed.kill()
        self.primary, *others = sorted(self.standbys, key=lambda s: s.received(), reverse=True)
        self.standbys = [*others, killed]
        self.primary.promote()
        for other in others:
            other.follow(self.primary)
            other.reload()
        return killed

    def restore(self, killed: PostgresServer) -> None:
        """Let a killed primary be a standby of the new one."""
        killed.copy(self.primary)
        killed.start()

    def close(self) -> None:
        """Stop all servers, and remove their folders."""
        for server in (*self.standbys, self.primary):
            server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_primary(self) -> None:
        primary = self.primary
        password_file = self._folder / "password"
        password_file.write_text(PASSWORD)
        give(password_file)
        how = ("--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync")
        run("initdb", "-D", primary.folder, "-U", "postgres", "--pwfile", password_file, *how)
        primary.set(_SETTINGS)

    def _copy_standby(self, number: int) -> PostgresServer:
        """Make a standby of a primary that never ran: a copy, which is quicker than a back-up."""
        standby = PostgresServer(self._folder / f"standby_{number}", name=f"standby_{number}")
        execute(("cp", "-R", self.primary.folder, standby.folder))
        standby.follow(self.primary)
        execute(("touch", standby.folder / _STANDBY_SIGNAL))
        return standby

"""The engines that tests need: a marker for each, by folder, file and fixture of the test.

The markers are `spark`, `postgres`, `mariadb`, `browser`, and `processes` (of services, tools and
programs).
``pytest --fast`` runs the tests that have none of them and are not slow. A test without a marker
starts no process: ``Guard`` refuses the process and names this file.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import PurePosixPath

MARKERS = ("browser", "mariadb", "postgres", "processes", "spark")

FOLDERS: Mapping[str, str] = {
    "pipeline/tests": "spark",
    "tests/chaos": "processes",
    "tests/database_chaos": "postgres",
    "tests/demo_database": "postgres",
    "tests/documented": "processes",
    "tests/foreign": "processes",
    "tests/from_kafka": "processes",
    "tests/hanging": "processes",
    "tests/hostile": "processes",
    "tests/manifests": "spark",
    "tests/operations": "processes",
    "tests/recovery": "processes",
    "tests/upgrade": "processes",
}
"""Folders whose tests all need one engine."""

FILES: Mapping[str, str] = {
    "cli/tests/test_console_command.py": "processes",
    "cli/tests/test_group_commands.py": "processes",
    "cli/tests/test_processes_of_commands.py": "processes",
    "cli/tests/test_remote_demo.py": "processes",
    "cli/tests/test_up_with_jaeger.py": "processes",
    "libs/local/tests/test_folder.py": "processes",
    "libs/local/tests/test_local_recovery.py": "processes",
    "libs/local/tests/test_log_errors.py": "processes",
    "libs/local/tests/test_processes.py": "processes",
    "libs/runtime/tests/journal/test_batch_rewrites.py": "processes",
    "libs/runtime/tests/journal/test_journal_crashes.py": "processes",
    "libs/runtime/tests/journal/test_journal_end.py": "processes",
    "libs/runtime/tests/journal/test_postgres_opening.py": "postgres",
    "libs/runtime/tests/journal/test_postgres_outcomes.py": "postgres",
    "libs/runtime/tests/journal/test_sqlite_durability.py": "processes",
    "libs/runtime/tests/test_service_process.py": "processes",
    "libs/runtime/tests/test_log_output.py": "processes",
    "libs/runtime/tests/test_postgres_programs.py": "postgres",
    "sdk/tests/test_standard_error.py": "processes",
    "sdk/tests/transform/test_until_signal.py": "processes",
    "tests/e2e/test_backup.py": "processes",
    "tests/e2e/test_database_page.py": "processes",
    "tests/e2e/test_examples.py": "processes",
    "tests/e2e/test_full_disks.py": "processes",
    "tests/e2e/test_home.py": "processes",
    "tests/e2e/test_idle_producers.py": "processes",
    "tests/e2e/test_joint_transactions.py": "processes",
    "tests/e2e/test_killed_workers.py": "processes",
    "tests/e2e/test_moves.py": "processes",
    "tests/e2e/test_nearly_full_disks.py": "processes",
    "tests/e2e/test_postgres.py": "postgres",
    "tests/e2e/test_processes.py": "processes",
    "tests/e2e/test_reaching.py": "processes",
    "tests/e2e/test_readme.py": "processes",
    "tests/e2e/test_renewed_tokens.py": "processes",
    "tests/e2e/test_replaced_cluster.py": "processes",
    "tests/e2e/test_signals.py": "processes",
    "tests/e2e/test_two_phase_commit.py": "processes",
    "tests/e2e/test_web_service.py": "processes",
    "tests/test_bench.py": "processes",
    "tests/test_bench_kafka.py": "processes",
    "tests/test_dist.py": "processes",
    "tests/test_imports.py": "processes",
    "tests/test_surroundings.py": "processes",
    "tests/test_tidy.py": "processes",
    "tests/simulation/test_simulation.py": "processes",
    "tests/tracing/test_export.py": "processes",
    "tests/tracing/test_transaction_traces.py": "processes",
    "tests/untrusted/test_untrusted_servers.py": "processes",
    "tests/web_console/test_console_sign_in.py": "processes",
    "tests/web_console/test_incomplete_lists.py": "processes",
}
"""Files whose tests need an engine, in folders whose other tests need none."""

FIXTURES: Mapping[str, str] = {
    "browser": "browser",
    "mariadb": "mariadb",
    "postgres": "postgres",
    "spark": "spark",
}
"""Fixtures that start an engine."""

PARAMETERS: Mapping[str, str] = {"postgres": "postgres"}
"""Parameters of the fixture ``engine`` that start one."""

ALLOWED = ("cluster_process.py", "git", "kubectl", "mount", "pg_ctl", "test", "umount")
"""Programs that a test without a marker may start: git lists the files of this project, kubectl
renders the manifests of k8s/, mount makes a small disk, and the command line has one cluster.
After the last test of a process, pg_ctl stops the server of earlier tests, and test looks whether
its user may run pg_ctl."""


def engines(path: str, fixtures: Collection[str], parameter: object = None) -> AbstractSet[str]:
    """Return the markers of a test, by its path, its fixtures and its parameter ``engine``."""
    found = _of_file(path) | {FIXTURES[name] for name in fixtures if name in FIXTURES}
    if isinstance(parameter, str) and parameter in PARAMETERS:
        return found | {PARAMETERS[parameter]}
    return found


@cache
def _of_file(path: str) -> frozenset[str]:
    of_folders = {marker for folder, marker in FOLDERS.items() if is_below(path, folder)}
    return frozenset(of_folders | ({FILES[path]} if path in FILES else set()))


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return f"{path}/".startswith(f"{folder}/")


class Guard:
    """Refuses the processes of tests that have no marker."""

    def __init__(self) -> None:
        self.test = ""
        """The test that runs and may start no process; empty if it may."""

    def install(self) -> None:
        """Look at each process that this process starts. This cannot be undone."""
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" and self.test:
            check(self.test, arguments[1])


def check(test: str, command: object) -> None:
    """Raise RuntimeError unless a test without a marker may start this command."""
    words = (
        [command]
        if isinstance(command, str | bytes) or not isinstance(command, Sequence)
        else command
    )
    names = {PurePosixPath(str(word)).name for word in words[:2]}
    if names.isdisjoint(ALLOWED):
        raise RuntimeError(
            f"{test} starts {words[0]!r} and has no marker of an engine: "
            "add its folder, file or fixture to tests/engines.py"
        )

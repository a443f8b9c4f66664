"""What all tests share."""

import gc
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import engines
import pytest
from file_scheduling import FileScheduling, turn
from hypothesis import HealthCheck, settings
from open_connections import watch_open_connections
from surroundings import (
    collect_quietly,
    leave_out_clients_of_spark,
    leave_out_earlier_loops,
    leave_out_tracebacks_of_garbage,
    own_log_configuration,
    use_own_environment,
    use_own_ports,
    use_own_signals,
)
from xdist.remote import Producer

# As the Makefile does. gRPC reads it at its import, which a folder's conftest.py may bring before
# pytest_configure.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Collection makes hundreds of thousands of objects and hardly any garbage: looking for it takes a
# fifth of the time. Tests run with the collector.
gc.disable()

# No test asserts how long anything takes: a slow machine finds no mistakes.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


ROOT = Path(__file__).parent

SPARK_TIMEOUT_S = 600
"""A session of Spark takes twenty seconds to start on two idle cores, and minutes on busy ones."""

SIMULATIONS = ("tests/simulation", "tests/defects", "tests/database_simulation", "tests/upgrade")
"""Folders whose tests let simulations fail: the errors keep objects of dead event loops."""

guard = engines.Guard()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-fast`."""
    parser.addoption(
        "--fast", action="store_true", help="leave out tests that need an engine or are slow"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leave the caller's environment, home and signals before any test is imported.

    A process that only distributes tests to workers leaves them for its workers.
    """
    if config.getoption("numprocesses") and not config.getoption("collectonly"):
        gc.enable()
        return
    guard.install()
    home = tempfile.TemporaryDirectory(prefix="semel-tests-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    use_own_environment(os.environ, Path(home.name))
    use_own_signals()
    use_own_ports(
        os.environ.get("PYTEST_XDIST_WORKER", ""),
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    )
    watch_open_connections()
    for each in (leave_out_earlier_loops, leave_out_tracebacks_of_garbage):
        logging.getLogger("asyncio").addFilter(each)


def pytest_collection_finish() -> None:
    """Keep what thousands of tests consist of out of every collection of garbage from here on."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling | None:
    """Give whole files to workers, and all files of Spark to one."""
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders whose tests all need an engine."""
    path = collection_path.relative_to(ROOT).as_posix()
    needs = any(engines.is_below(path, folder) for folder in engines.FOLDERS)
    return True if needs and config.getoption("fast") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its engines, before ``-m`` selects, and let long files come first."""
    for item in items:
        assert isinstance(item, pytest.Function)
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        path = item.nodeid.partition("::")[0]
        for marker in engines.engines(path, item.fixturenames, parameters.get("engine")):
            item.add_marker(marker)
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))
    long = {item for item in items if _engines_of(item) or item.get_closest_marker("slow")}
    if config.getoption("fast"):
        config.hook.pytest_deselected(items=list(long))
        items[:] = [item for item in items if item not in long]
    else:
        files = {item.path for item in long}
        items.sort(key=lambda item: turn(item.nodeid, is_long=item.path in files))


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Leave out of a test's log the lines of clients that are not of the test."""
    caplog.handler.addFilter(leave_out_clients_of_spark)
    yield caplog
    caplog.handler.removeFilter(leave_out_clients_of_spark)


@pytest.fixture(autouse=True)
def log_configuration() -> Iterator[None]:
    """Let the configuration of the log end with the test that made it."""
    with own_log_configuration():
        yield


@pytest.fixture(scope="module")
def only_own_garbage() -> None:
    """Free what earlier tests have left, for a test that looks at what it leaves itself."""
    collect_quietly()


@pytest.fixture(scope="module", autouse=True)
def free_simulations(request: pytest.FixtureRequest) -> Iterator[None]:
    """Free what failed simulations have left before the tests of another file meet it."""
    yield
    path = request.path.relative_to(ROOT).as_posix()
    if any(engines.is_below(path, folder) for folder in SIMULATIONS):
        collect_quietly()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no test without the marker of an engine start a process."""
    guard.test = "" if _engines_of(item) else item.nodeid
    try:
        return (yield)
    finally:
        guard.test = ""


def _engines_of(item: pytest.Item) -> list[str]:
    return [name for name in engines.MARKERS if item.get_closest_marker(name)]

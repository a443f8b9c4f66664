"""Every command of every page exists; the tests run the commands that one machine can run."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from documented.lookup import ELSEWHERE, PROGRAMS, wrong
from documented.pages import (
    PAGES,
    ROOT,
    Line,
    blocks,
    inline,
    lines,
    mentions,
    simple_commands,
    text_of,
)
from documented.shell import Shell
from semel_broker.config import BrokerSettings
from semel_cli.main import app
from semel_coordinator.config import CoordinatorSettings
from semel_group.config import GroupSettings
from semel_runtime.server.limits.server_limits import ServerLimits

RUN_AS_A_WHOLE = {"docs/start/first-steps.md", "docs/use/clients.md"}
"""Pages that tests/e2e/test_readme.py follows, and whose printed output it compares."""
NOT_RUN_HERE = {
    r"pip install |docker run ": "needs wheels or an image: tests/test_dist.py",
    r"make ": "work of minutes: .ci/run and CONTRIBUTING.md say who runs which target",
    r"kubectl |for (name|i|file) in |done$|semel topics list --bootstrap ": "make k8s-test",
    r"kafka-consumer-groups\.sh ": "needs a Kafka: make from-kafka",
    r"spark-submit |\.venv/bin/python -m semel_pipelines": "needs PySpark: make pipeline",
    r"semel recover ": "needs a disk that is lost: tests/recovery",
    r"semel check ": "needs an instance that is stopped: cli/tests",
    r"semel transactions (abort|fence) ID": "needs a transaction that hangs: cli/tests",
    r"semel (topics move|cluster decommission) ": "needs more brokers than one: cli/tests",
    r"semel up --jaeger": "needs Jaeger: make trace-demo",
    r"(\.venv/bin/)?semel up": "the cluster of this test is started like that",
    r"semel console": "serves until it is stopped: tests/web_console",
    r"SEMEL_\w+=": "a setting: its name is looked up, below",
    r"cd tests && python -m upgrade ": "make test has what it keeps: tests/upgrade",
}
"""Lines by their beginning, with the reason, or the target that runs them instead."""
CLUSTER = "semel up --metrics"
"""A line of docs/run/operations.md."""
BEFORE = {
    "semel topics delete-records orders --partition 0": "seq 1000 | semel produce orders",
}
"""The state that a page takes for granted before a line."""
NO_SETTINGS = {
    "after_restore": "an argument of loops with a database",
    "handle_signals": "an argument of transform",
    "schema_prefix": "of the URL of a journal",
    "one_shot": "of the handle of a joint transaction",
}
"""Names in inline code that get a value as settings do, and are no settings."""

MISTAKES = {
    "semel topics alter orders --partitions 8": ("--partitions", "--partitons"),
    "semel quotas list": ("list", "show"),
    "semel acls list --topic orders-eu --match": ("acls", "rules"),
    "semel transactions abort ID": (" ID", ""),
    'semel recover broker-0 --data /data/broker-0 --reason "disk of host 7 failed" --yes': (
        "--yes",
        "",
    ),
    "semel recover": ("recover", "restore"),
    "make alerts-check": ("alerts-check", "check-alerts"),
    "make trace-demo KEEP=1": ("KEEP", "KEPT"),
    "python -m bench deletion": ("deletion", "deletions"),
    "docker build --file loadtest/k8s/Dockerfile": ("loadtest/k8s", "loadtest"),
    ".venv/bin/semel topics create audit": (".venv/bin/semel", ".venv/bin/semmel"),
}
"""Lines that the pages have, and mistakes that they could have."""


def said(page: str) -> Iterator[Line]:
    """Yield all commands of a page."""
    yield from lines(page)
    yield from mentions(page, PROGRAMS)


def to_run() -> list[Line]:
    """Return the lines of all pages that are run here, in their order."""
    shown = [line for page in PAGES if page not in RUN_AS_A_WHOLE for line in lines(page)]
    return [line for line in shown if not any(re.match(why, line.text) for why in NOT_RUN_HERE)]


@pytest.mark.parametrize("page", PAGES)
def test_all_that_a_page_says_to_type_is_there(page: str) -> None:
    assert [each for line in said(page) for each in wrong(line)] == []


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_page_is_found(text: str) -> None:
    line = next(line for page in PAGES for line in said(page) if line.text.startswith(text))
    assert wrong(line) == []
    assert wrong(line.saying(*MISTAKES[text])) != []


def test_commands_stand_in_blocks_that_say_so() -> None:
    programs = "|".join((*PROGRAMS, *ELSEWHERE))
    hidden = re.compile(rf"^(\$ |(\.venv/bin/)?({programs}) )", re.MULTILINE)
    found = [
        f"{page}:{number}"
        for page in PAGES
        for number, language, text in blocks(page)
        if language == "" and hidden.search(text)
    ]
    assert found == []


def test_every_setting_that_a_page_names_is_there() -> None:
    services = (BrokerSettings, CoordinatorSettings, GroupSettings)
    settings = {name for service in services for name in service.model_fields}
    folders = ("cli/src", "sdk/src", "libs/local/src", "pipeline/apps/src")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    others = set(re.findall(r'"(SEMEL_\w+)"', "".join(path.read_text("utf-8") for path in paths)))
    known = others | {f"SEMEL_{name.upper()}" for name in settings}
    unknown = [
        (page, name)
        for page in PAGES
        for name in re.findall(r"\bSEMEL_[A-Z_]+[A-Z]", text_of(page))
        if name not in known
    ]
    given = re.compile(r"([a-z]+(?:_[a-z]+)+)=\S+")
    unknown += [
        (page, named[1])
        for page in PAGES
        for _, code in inline(page)
        if (named := given.fullmatch(code)) and named[1] not in settings | NO_SETTINGS.keys()
    ]
    assert unknown == []


def test_tables_give_the_defaults_of_settings() -> None:
    settings = BrokerSettings.model_fields | CoordinatorSettings.model_fields
    defaults = {name: field.default for name, field in settings.items()}
    defaults |= {f"ServerLimits.{each.name}": each.default for each in fields(ServerLimits)}
    row = re.compile(r"^\| `([\w.]+)` \| ([\d,]+)(?: (KiB|MiB))?\b", re.MULTILINE)
    told = [
        (page, name, int(number.replace(",", "")) * {"KiB": 1 << 10, "MiB": 1 << 20}.get(unit, 1))
        for page in PAGES
        for name, number, unit in row.findall(text_of(page))
        if name in defaults
    ]
    assert len(told) >= 15
    assert [each for each in told if defaults[each[1]] != each[2]] == []


def test_every_path_that_a_page_names_is_there() -> None:
    paths = {
        (page, code)
        for page in PAGES
        for _, code in inline(page)
        if re.fullmatch(r"[\w.*-]+/[\w./*-]*", code) and (ROOT / code.partition("/")[0]).exists()
    }
    made = re.compile(r"build/")
    assert [
        path for path in paths if not made.match(path[1]) and not list(ROOT.glob(path[1]))
    ] == []


def test_every_reason_not_to_run_a_line_has_its_line() -> None:
    shown = [line.text for page in PAGES if page not in RUN_AS_A_WHOLE for line in lines(page)]
    assert [why for why in NOT_RUN_HERE if not any(re.match(why, text) for text in shown)] == []
    assert any(text.startswith(CLUSTER) for text in shown)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_what_the_pages_say_to_type_runs(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    found = to_run()
    assert len(found) > 12
    with shell.up(CLUSTER):
        terminal = CliRunner()
        for line in found:
            for given in (what for start, what in BEFORE.items() if line.text.startswith(start)):
                shell.run(given)
            (program, *words), *others = simple_commands(line.text)
            if program == "semel" and not others:  # In this process: it starts in no time.
                ran = terminal.invoke(app, words, input="y\n", env=shell.environment)
                assert ran.exit_code == 0, (line, ran.output, ran.exception)
            else:
                shell.run(line.text)

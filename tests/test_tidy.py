"""The rules of style that a machine can check, beyond those of ruff, mypy and import-linter.

Each test is one rule; a failure names file and line. Where a rule has exceptions, they stand above
the test as data, with their reason.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePath
from urllib.parse import urlsplit

import pytest
from source_tree import (
    ROOT,
    Module,
    Offence,
    modules,
    pure_modules,
    pyproject,
    text_files,
)

# Whichever comes first reads and parses the whole tree.
pytestmark = pytest.mark.timeout(300)

LINES_MAX = 450
FUNCTION_LINES_MAX = 60
FOLDER_MODULES_MAX = 20


def test_every_module_says_what_it_is_responsible_for() -> None:
    report(
        Offence(module.path, 1, "no module docstring")
        for module in modules()
        if not ast.get_docstring(module.tree)
    )


def test_no_file_is_too_long_to_tell_one_story() -> None:
    report(
        Offence(module.path, lines, f"{lines} lines are more than {LINES_MAX}")
        for module in modules()
        if (lines := len(module.text.splitlines())) > LINES_MAX
    )


def test_no_function_is_longer_than_a_screen() -> None:
    report(
        module.offence(node, f"{node.name} has {lines} lines, more than {FUNCTION_LINES_MAX}")
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    )


def test_a_source_folder_has_few_modules() -> None:
    folders = Counter(
        PurePath(module.path).parent.as_posix()
        for module in modules()
        if module.is_source and not module.path.endswith("__init__.py")
    )
    report(
        Offence(folder, count, f"{count} modules are more than {FOLDER_MODULES_MAX}")
        for folder, count in folders.items()
        if count > FOLDER_MODULES_MAX
    )


def test_a_test_name_is_a_sentence() -> None:
    report(
        module.offence(node, f"{node.name} is no sentence")
        for module in modules()
        if module.is_test
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name.split("_")) <= 3
    )


def test_comments_leave_nothing_to_do() -> None:
    report(
        Offence(module.path, comment.line, comment.text)
        for module in modules()
        for comment in module.comments
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", comment.text)
    )


def test_every_suppression_names_its_rule_and_its_reason() -> None:
    unexplained = re.compile(r"#\s*(type:\s*ignore|noqa)(?!(\[|:\s*)[\w, -]+\]?\s*(#|-)\s*\w.*\w)")
    report(
        Offence(module.path, comment.line, comment.text)
        for module in modules()
        for comment in module.comments
        if unexplained.search(comment.text)
    )


# Modules that talk to a terminal.
PRINTING = (
    "bench/*",
    "cli/src/*",
    "examples/*",
    "loadtest/*",
    "pipeline/tests/*/__main__.py",
    "tests/*/__main__.py",
    "tools/*",
)


def test_only_a_module_that_talks_to_a_terminal_prints() -> None:
    report(
        module.offence(call, "print")
        for module in outside(PRINTING)
        for call in module.calls
        if ast.unparse(call.func) == "print"
    )


# The settings of a process are read once, where it starts, and passed on by value.
READING_ENVIRONMENT = (
    "*/__main__.py",
    "*/config.py",
    "*/settings.py",
    "*/tests/*",
    "bench/*",
    "cli/src/*",
    "conftest.py",  # takes the caller's proxies away from tests
    "libs/common/src/semel_common/quiet_grpc.py",  # a setting that gRPC takes from nowhere else
    "tests/*",
    "tools/*",
)


def test_only_configuration_reads_the_environment() -> None:
    readers = {"os.environ", "os.environb", "os.getenv"}
    report(
        found
        for module in outside(READING_ENVIRONMENT)
        for found in module.uses(readers.__contains__)
    )


# Modules whose tasks outlive a call; each names and awaits them. All others have a TaskGroup.
OWNING_TASKS = (
    "*/app.py",
    "*/tests/*",
    "examples/web_service.py",  # an order goes on when its request is over
    "libs/common/src/semel_common/wire/diagnosis/call_diagnosis.py",  # looks while calls wait
    "libs/common/src/semel_common/wire/frames/frame_stream.py",  # connecting
    "libs/common/src/semel_common/wire/frames/grpc_pipe.py",  # its reader and writer
    "libs/common/src/semel_common/wire/diagnosis/peer_probe.py",  # failed calls share one probe
    "libs/runtime/src/semel_runtime/journal/postgres/writer.py",  # writes outlive their callers
    "libs/runtime/src/semel_runtime/journal/sqlite/appender.py",  # appends outlive their callers
    "libs/runtime/src/semel_runtime/journal/sqlite/table_filler.py",  # the tables follow the log
    "libs/runtime/src/semel_runtime/process/interruption.py",  # waits for a signal
    "libs/runtime/src/semel_runtime/process/open_service.py",  # the watches of an open service
    "libs/runtime/src/semel_runtime/process/run_service.py",  # what ends a service
    "libs/runtime/src/semel_runtime/runner/runner.py",  # the committer
    "libs/runtime/src/semel_runtime/server/frames/frame_session.py",  # a task for each request
    "libs/runtime/src/semel_runtime/server/limits/connections_per_address.py",  # its looks
    "libs/runtime/src/semel_runtime/server/limits/unproven_connections.py",  # TLS handshakes
    "libs/runtime/src/semel_runtime/testing/network.py",  # a task for each call
    "tests/*",
)


def test_tasks_belong_to_a_task_group() -> None:
    bare = re.compile(r"asyncio\.(create_task|ensure_future)|(.*[._])?loop(\(\))?\.create_task")
    report(found for module in outside(OWNING_TASKS) for found in module.uses(bare.fullmatch))


# Modules that end tasks of their own, and take each one's error as a value.
GATHERING = (
    "libs/runtime/src/semel_runtime/process/run_service.py",  # the task that ended the service
    "libs/runtime/src/semel_runtime/testing/network.py",  # calls that are cut off
)


def test_source_gathers_only_errors_of_tasks_that_it_ends() -> None:
    report(
        found
        for module in outside(GATHERING)
        if module.is_source
        for found in module.uses({"asyncio.gather"}.__contains__)
    )


def test_source_has_no_locks() -> None:
    lock = re.compile(r"(asyncio|threading|multiprocessing)\.R?Lock")
    report(
        found for module in modules() if module.is_source for found in module.uses(lock.fullmatch)
    )


def test_source_has_no_any() -> None:
    report(
        found
        for module in modules()
        if module.is_source
        for found in module.uses({"typing.Any"}.__contains__)
    )


def test_who_claims_to_be_pure_is_held_to_it() -> None:
    held = {module.path for module in pure_modules()}
    report(
        Offence(module.path, 1, "says Pure, and is not in the import contract `pure`")
        for module in modules()
        if module.is_source
        and module.path not in held
        and re.search(r"\bPure\b", ast.get_docstring(module.tree) or "")
    )


def test_pure_modules_take_time_chance_and_identity_as_values() -> None:
    impure = re.compile(
        r"(os|random|secrets|time|uuid)(\..*)?|(.*\.)?(datetime|date)\.(now|utcnow|today)|open|input"
    )
    report(found for module in pure_modules() for found in module.uses(impure.fullmatch))


def test_pure_modules_wait_for_nothing() -> None:
    report(
        module.offence(node, "await")
        for module in pure_modules()
        for node in module.nodes
        if isinstance(node, ast.Await)
    )


# Processes of their own have only the real clock; the tests across members wait for these.
SLEEPING = ("pipeline/tests/crashes/*", "tests/*")


def test_tests_of_members_do_not_sleep() -> None:
    report(
        module.offence(call, ast.unparse(call))
        for module in outside(SLEEPING)
        if module.is_test
        for call in module.calls
        if ast.unparse(call.func) in {"asyncio.sleep", "time.sleep"}
        and ast.unparse(call.args[0]) != "0"
    )


# Spark's readers and writers have a method of that name, which takes the name of a source.
SPARK_FORMAT = re.compile(r".*\.(read|readStream|write|writeStream)|lines|writer|msgspec\.json")


def test_no_text_from_outside_is_a_template() -> None:
    """A template that holds a caller's text would read attributes, or pad to any width."""
    report(
        module.offence(node, f"{ast.unparse(node)[:80]}: the template is no literal")
        for module in modules()
        for constants in (text_constants(module.nodes),)
        for node in module.nodes
        if isinstance(node, ast.expr)
        and (template := template_of(node, constants)) is not None
        and not isinstance(template, ast.Constant)
        and not SPARK_FORMAT.fullmatch(ast.unparse(template))
    )


@pytest.mark.parametrize(
    "code",
    [
        'f"{name}: {reason}".format(epoch=1)',
        "MESSAGES[row].format(epoch=1)",
        "(name + ' {epoch}').format_map(facts)",
        "template.vformat(facts, {})",
        "string.Template(text).substitute(facts)",
        "text % (name, value)",
        "f'{name} %s' % value",
        "(name + ' %s') % value",
        "log.info(f'{name} %s', value)",
        "log.info(name + ' %s', value)",
        "TEXT = 'a %s'; TEXT % value",
    ],
)
def test_a_template_that_is_no_literal_is_found(code: str) -> None:
    tree = ast.parse(code)
    constants = text_constants(ast.walk(tree))
    templates = [
        template_of(node, constants) for node in ast.walk(tree) if isinstance(node, ast.expr)
    ]
    found = [template for template in templates if template is not None]
    assert len(found) == 1
    assert not isinstance(found[0], ast.Constant)


# Base classes that a class may have: values, closed sets, seams, errors, and bases of libraries
# (Spark looks at the class of the values that a data source returns). Senders share their calls
# (ADR 0089); the admin client and the consumer are made of parts.
BASES = re.compile(
    r"(.*\.)?((Buffered)?Protocol|Generic|NamedTuple|Struct|TypedDict|(Str|Int)?(Enum|Flag)|BaseModel|(Base|Service|Participant)Settings"
    r"|BaseEventLoop|ABC|(Record|Transaction)?Sends|(Admin|Consumer)Part|(Topic|Record|Transaction)Admin|GroupQueries|Consumer(Positions|Offsets)|.*(Error|Exception|Servicer|Interceptor|Handler|Formatter)|TyperGroup"
    r"|DataSource\w*|WriterCommitMessage|InputPartition|SupportsTriggerAvailableNow|Collector|Resource"
    r"|(?<=sqlite3\.)Connection|(?<=io\.)FileIO)"
)


def test_classes_inherit_only_from_errors_and_protocols() -> None:
    report(
        module.offence(base, f"{node.name} is a {ast.unparse(base)}")
        for module in modules()
        if module.is_source
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if not BASES.fullmatch(ast.unparse(base).partition("[")[0])
    )


def test_no_file_names_a_place_on_some_machine() -> None:
    place = re.compile(r"(?<![\w.~-])/(home|Users|root|work|opt/wheels)/\w")
    report(
        Offence(path, number, line.strip())
        for path in text_files()
        for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), start=1)
        if place.search(line)
    )


def test_the_lock_takes_every_package_from_one_public_registry() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
    sources = (package["source"] for package in lock["package"])
    registries = {source["registry"] for source in sources if "registry" in source}
    assert len(registries) == 1, registries
    place = urlsplit(registries.pop())
    assert place.scheme == "https"
    assert not place.username, "the lock holds a credential"
    assert not place.port, "the lock names a mirror"


def test_generated_code_is_fresh() -> None:
    command = [sys.executable, "tools/generate_protos.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_member_is_known_to_every_tool() -> None:
    tool = pyproject()["tool"]
    folders = [path for each in tool["uv"]["workspace"]["members"] for path in ROOT.glob(each)]
    sources = [f"{folder.relative_to(ROOT).as_posix()}/src" for folder in folders]
    imported = sorted(path.name for source in sources for path in (ROOT / source).glob("*"))
    tests = [path for path in tool["pytest"]["pythonpath"] if path.endswith("tests")]
    # The scripts in tools/ import one another by name.
    assert sorted(tool["mypy"]["mypy_path"]) == sorted([*sources, *tests, "tools"])
    assert tool["ruff"]["lint"]["isort"]["known-first-party"] == imported
    assert tool["importlinter"]["root_packages"] == imported
    for pattern in tool["pytest"]["testpaths"]:
        assert any(ROOT.glob(pattern)), f"pytest looks for tests in {pattern}, which is not there"
    for path in tool["pytest"]["pythonpath"]:
        assert (ROOT / path).is_dir(), f"pytest imports from {path}, which is not there"


def test_modules_of_tests_have_names_of_their_own() -> None:
    """All tests folders are on the path together: see `pythonpath` and `mypy_path`."""
    unchecked = re.compile(pyproject()["tool"]["mypy"]["exclude"][0])
    names = Counter(
        module.path.split("tests/", 1)[1]
        for module in modules()
        if module.is_test and not unchecked.fullmatch(module.path)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_modules_that_mypy_does_not_read_only_import() -> None:
    unchecked = re.compile(pyproject()["tool"]["mypy"]["exclude"][0])
    report(
        module.offence(node, "mypy does not read this file; move this to a module of fixtures")
        for module in modules()
        if unchecked.fullmatch(module.path)
        for node in module.tree.body[1:]
        if not isinstance(node, ast.ImportFrom) and not ast.unparse(node).startswith("__all__ = ")
    )


def test_the_architecture_names_modules_that_are_there() -> None:
    there = {module.dotted_name for module in modules() if module.is_source}
    there |= {name.rpartition(".")[0] for name in there}
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`((?:semel_\w+|aiosemel)\.[\w.]+)`", text))
    assert named - there == set()


FORMATTING = {"format", "format_map", "vformat", "substitute", "safe_substitute"}
LOGGING = {"debug", "info", "warning", "error", "exception", "critical"}
LOGGERS = {"log", "_log", "logger", "_logger", "logging"}


def template_of(node: ast.expr, constants: set[str]) -> ast.expr | None:
    """Return the text that an expression fills values into; None if it fills in nothing."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        fills = isinstance(node.right, ast.Tuple | ast.Dict) or is_text(node.left, constants)
        return node.left if fills else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr in FORMATTING:
        return node.func.value
    if node.func.attr in LOGGING and ast.unparse(node.func.value) in LOGGERS and node.args:
        return node.args[0] if is_text(node.args[0], constants) else None
    return None


def is_text(node: ast.expr, constants: set[str]) -> bool:
    """Whether an expression is a text, as far as its own words say."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left, constants) or is_text(node.right, constants)
    if isinstance(node, ast.Name):
        return node.id in constants
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def text_constants(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a module gives to texts."""
    return {
        ast.unparse(target)
        for node in nodes
        if isinstance(node, ast.Assign) and is_text(node.value, set())
        for target in node.targets
    }


def report(offences: Iterable[Offence]) -> None:
    """Fail if there are any, naming each."""
    found = sorted(set(offences))
    if found:
        pytest.fail("\n".join(map(str, found)), pytrace=False)


def outside(patterns: Iterable[str]) -> Iterator[Module]:
    """Yield the modules to which no pattern is an exception."""
    excepted = tuple(patterns)
    for module in modules():
        if not any(fnmatchcase(module.path, pattern) for pattern in excepted):
            yield module

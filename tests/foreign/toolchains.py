"""The build and the start of the example in each language, and the tools that these need."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BUILD = ROOT / "build" / "examples"
# buf lies beside the interpreter.
TOOLS = Path(sys.executable).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One language."""

    name: str
    needs: tuple[str, ...]
    install: tuple[str, ...] = ()
    """The command that installs the dependencies, if the build does not."""
    lock: str = ""
    installed: str = ""
    """A file that is older than the lock, or not there, if there is something to bring."""
    build: tuple[tuple[str, ...], ...]
    """Commands, run in the example's folder one after the other."""
    run: tuple[str, ...]
    sources: tuple[str, ...]
    """The files that are written by hand, as patterns below the folder."""
    stopped_status: int = 0
    """How it ends at SIGTERM."""

    @property
    def folder(self) -> Path:
        """Where it is."""
        return EXAMPLES / self.name

    def missing(self) -> Sequence[str]:
        """Return the programs that are not on this machine."""
        return [program for program in self.needs if shutil.which(program) is None]


LANGUAGES = (
    Example(
        name="go",
        needs=("go",),
        build=(
            (str(TOOLS / "buf"), "generate"),
            ("go", "build", "-o", str(BUILD / "invoices-go"), "."),
            ("go", "vet", "."),
        ),
        run=(str(BUILD / "invoices-go"),),
        sources=("*.go",),
    ),
    Example(
        name="typescript",
        needs=("node", "npm"),
        install=("npm", "ci", "--no-fund", "--no-audit", "--prefer-offline"),
        lock="package-lock.json",
        installed="node_modules/.package-lock.json",
        build=(
            (str(TOOLS / "buf"), "generate"),
            ("npm", "run", "--silent", "build"),
        ),
        run=("node", str(EXAMPLES / "typescript" / "dist" / "src" / "main.js")),
        sources=("src/*.ts",),
    ),
    Example(
        name="java",
        needs=("java", "mvn"),
        build=(("mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "package"),),
        run=("java", "-jar", str(EXAMPLES / "java" / "target" / "invoices.jar")),
        sources=("src/main/java/**/*.java",),
        stopped_status=128 + signal.SIGTERM,
    ),
)


class BuildError(Exception):
    """A command of a build has failed."""


def build(example: Example) -> None:
    """Build an example, unless nothing has changed; raises BuildError with the output."""
    BUILD.mkdir(parents=True, exist_ok=True)
    built = BUILD / f"{example.name}.built"
    program = Path(example.run[-1])
    if built.exists() and program.exists() and built.stat().st_mtime > _changed(example):
        return
    for command in (*_install(example), *example.build):
        done = subprocess.run(
            command, cwd=example.folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise BuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    built.touch()


def _changed(example: Example) -> float:
    """Return when anything was changed that goes into a build."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--"]
    command += [str(example.folder), "protos/semel", str(Path(__file__))]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / path for path in listed.split("\0") if path)
    return max(path.stat().st_mtime for path in paths if path.exists())


def _install(example: Example) -> Sequence[tuple[str, ...]]:
    if not example.install:
        return ()
    lock, installed = example.folder / example.lock, example.folder / example.installed
    fresh = installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime
    return () if fresh else (example.install,)

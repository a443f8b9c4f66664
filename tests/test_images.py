"""What an image is built from."""

import re

from source_tree import ROOT, pyproject

MEMBERS = pyproject()["tool"]["uv"]["workspace"]["members"]


def test_the_engine_gets_every_member_of_the_workspace() -> None:
    """`uv sync` in an image needs the folders of them all, whichever package it installs."""
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert {member.partition("/")[0] for member in MEMBERS} <= set(sent)

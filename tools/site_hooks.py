"""Hooks of MkDocs: pages of the repository that lie outside of docs/, and links to its files.

A link to a file that is no page of the site, such as a test, becomes its text. A link to a file
that does not exist is a warning, and `mkdocs build --strict` fails.
"""

import logging
import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "start/changelog.md",
    "examples/README.md": "use/examples.md",
    "ARCHITECTURE.md": "internals/architecture.md",
    "CONTRIBUTING.md": "internals/contributing.md",
    "SECURITY.md": "internals/security-policy.md",
}
"""Files of the repository, and where the site shows them."""
_SOURCES = {uri: source for source, uri in OUTSIDE.items()}
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
_log = logging.getLogger("mkdocs.hooks.site")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside of docs/."""
    for source, uri in OUTSIDE.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite each link to a file of the repository."""
    del config, files
    uri = page.file.src_uri
    source = _SOURCES.get(uri, f"docs/{uri}")
    return _LINK.sub(lambda found: _link(found, source, uri), markdown)


def _link(found: re.Match[str], source: str, uri: str) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    if "://" in target:
        return found[0]
    path = os.path.normpath(Path(source).parent / target)
    shown = OUTSIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if shown is not None:
        return f"[{text}]({os.path.relpath(shown, Path(uri).parent)}{anchor})"
    if not (ROOT / path).exists():
        _log.warning("%s: the link to %s leads nowhere", source, target)
    return text

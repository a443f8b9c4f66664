"""Templates: everything that they are given is escaped.

They show escapes for characters that steer a browser or have no shape. ``{{ text | e }}`` is the
text as it is: for the fields and addresses of a page, which come back to the console.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from semel_console.insight.texts import visible
from semel_console.mode import Mode

STATIC = Path(__file__).parent.parent / "static"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around every page."""

    path: str
    """Of the page, for the mark in the navigation."""
    address: str
    """Of the page, with its parameters: it is asked for again there."""
    cluster: str
    mode: Mode
    can_sign_out: bool
    query: str = ""
    """What was searched for."""


@cache
def environment() -> Environment:
    """Return the templates, each parsed once."""
    made = Environment(
        loader=PackageLoader("semel_console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.globals["asset"] = asset
    return made


def _shown(value: object) -> object:
    """Return a text as a person can read it; what a template has made stays as it is."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def render(template: str, frame: Frame, **values: object) -> str:
    """Return a page as HTML."""
    return environment().get_template(template).render(frame=frame, **values)


@cache
def asset(name: str) -> str:
    """Return the address of a file of the console, which changes with the file."""
    digest = sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"

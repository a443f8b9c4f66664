"""The meaning of each setting: the docstring under its field.

Pydantic would read the source of each class for it, which was a tenth of the work of a service's
start. So only the help and the pages look for it.
"""

import ast
from inspect import cleandoc, getsource
from itertools import pairwise

from pydantic import BaseModel


def describe_fields(settings: type[BaseModel]) -> None:
    """Make the docstring under each field of a class, and of its bases, the field's description."""
    for base in reversed(settings.__mro__):
        if issubclass(base, BaseModel) and base.__module__.startswith("semel_"):
            _describe(settings, base)


def _describe(settings: type[BaseModel], base: type[BaseModel]) -> None:
    (definition,) = ast.parse(getsource(base)).body
    assert isinstance(definition, ast.ClassDef)
    for statements in pairwise(definition.body):
        match statements:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                settings.model_fields[name].description = cleandoc(meaning)
            case _:
                continue

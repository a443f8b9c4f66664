"""Values as text, to compare: in whatever order their sets and mappings have been filled."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass


def normal(value: object) -> object:
    """Return a value whose text does not depend on the order of sets and mappings."""
    names = getattr(value, "__struct_fields__", None)
    if names is None and is_dataclass(value):
        names = [field.name for field in fields(value)]
    if names is not None:
        return type(value).__name__, [normal(getattr(value, name)) for name in names]
    if isinstance(value, Mapping):
        return sorted((repr(normal(key)), repr(normal(each))) for key, each in value.items())
    if isinstance(value, AbstractSet):
        return sorted(repr(normal(each)) for each in value)
    return value

"""The schemas that are made of other projects' definitions agree with the API server."""

import importlib.util
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from manifests.rendered import ROOT

_SPEC = importlib.util.spec_from_file_location(
    "fetch_crd_schemas", ROOT / "tools" / "fetch_crd_schemas.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
crds = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(crds)

TEXT = {"type": "string"}
NAMED: dict[str, Any] = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("structural", "value", "is_taken"),
    [
        (NAMED, {"name": "a"}, True),
        (NAMED, {"name": "a", "nme": "b"}, False),
        (NAMED, {}, False),
        (NAMED, {"name": None}, False),
        (NAMED | OPEN, {"name": "a", "nme": "b"}, True),
        (NAMED | OPEN, {"name": 1}, False),
        ({"type": "object"}, {}, True),
        ({"type": "object"}, {"a": 1}, False),
        ({"type": "object"} | OPEN, {"a": 1}, True),
        (OPEN, "anything", True),
        ({"type": "object", "additionalProperties": TEXT}, {"a": "b"}, True),
        ({"type": "object", "additionalProperties": TEXT}, {"a": 1}, False),
        ({"type": "object", "additionalProperties": NAMED}, {"a": {"b": 1}}, False),
        ({"type": "array", "items": NAMED}, [{"name": "a", "nme": "b"}], False),
        ({"type": "string", "nullable": True}, None, True),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}, 5, True),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}, "5%", True),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}, "five", False),
        ({"x-kubernetes-int-or-string": True}, 5.5, False),
        ({"x-kubernetes-int-or-string": True, "nullable": True}, None, True),
        (NAMED | {"anyOf": [{"properties": {"name": {"enum": ["a"]}}}]}, {"name": "a"}, True),
        (NAMED | {"anyOf": [{"properties": {"name": {"enum": ["a"]}}}]}, {"name": "b"}, False),
        (NAMED | {"not": {"required": ["name"]}}, {"name": "b"}, False),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, False),
        (
            NAMED | {"x-kubernetes-embedded-resource": True},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "name": "b"},
            True,
        ),
    ],
)
def test_a_value_is_taken_as_the_api_server_takes_it(
    structural: dict[str, Any], value: object, is_taken: bool
) -> None:
    assert Draft202012Validator(crds.strict(structural)).is_valid(value) is is_taken
    twice = {"type": "object", "properties": {"a": structural, "b": {"items": structural}}}
    schema = crds.shared(crds.strict(twice))
    for whole in ({"a": value}, {"b": [value]}):
        assert Draft202012Validator(schema).is_valid(whole) is is_taken


def test_what_occurs_again_is_written_once() -> None:
    long = {"type": "object", "properties": {f"name{number}": TEXT for number in range(9)}}
    schema = crds.shared(crds.strict({"type": "object", "properties": {"a": long, "b": long}}))
    assert list(schema["$defs"]) == ["part0"]
    assert schema["properties"] == {each: {"$ref": "#/$defs/part0"} for each in "ab"}

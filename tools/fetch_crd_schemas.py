"""Fetches what the API server knows of the kinds that others define, for tests/manifests.

Each is a JSON schema, made of the structural schema in the CustomResourceDefinition that a release
of its project brings along. As with strict field validation, it refuses fields that there are not.
What it cannot say is left out: rules in CEL, lists that are sets or maps, formats.

Needs Go, which takes the releases from its module proxy and holds them against its checksums.
"""

import json
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "manifests" / "crds"
Schema = dict[str, Any]


class Source(NamedTuple):
    """Where a definition is."""

    module: str
    version: str
    path: str


_CERT_MANAGER = ("github.com/cert-manager/cert-manager", "v1.20.0", "deploy/crds")
_PROMETHEUS = (
    "github.com/prometheus-operator/prometheus-operator",
    "v0.83.0",
    "example/prometheus-operator-crd",
)
_SPARK = ("github.com/kubeflow/spark-operator/v2", "v2.5.2", "config/crd/bases")
_POSTGRES = ("github.com/cloudnative-pg/cloudnative-pg", "v1.28.0", "config/crd/bases")
"""The oldest that k8s/ may be used with; all four are under the Apache License 2.0."""

SOURCES = [
    Source(module, version, f"{folder}/{name}.yaml")
    for (module, version, folder), names in (
        (_CERT_MANAGER, ("cert-manager.io_certificates", "cert-manager.io_issuers")),
        (
            _PROMETHEUS,
            ("monitoring.coreos.com_prometheusrules", "monitoring.coreos.com_servicemonitors"),
        ),
        (_SPARK, ("sparkoperator.k8s.io_sparkapplications",)),
        (_POSTGRES, ("postgresql.cnpg.io_clusters",)),
    )
    for name in names
]

_KEPT = frozenset(
    {"enum", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength"}
    | {"minProperties", "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems"}
)
"""What means in JSON schema what it does in a structural schema."""
_SHARED_MIN_CHARACTERS = 120
"""From which size on a part that occurs again is written once."""


def main() -> None:
    """Write the schemas of all kinds."""
    FOLDER.mkdir(exist_ok=True)
    for source in SOURCES:
        release = _fetched(source.module, source.version)
        definition = yaml.safe_load((release / source.path).read_text())
        for version in definition["spec"]["versions"]:
            if version["served"]:
                _write(definition["spec"], version, source)


def _fetched(module: str, version: str) -> Path:
    """Return where the files of a release are. Raises CalledProcessError."""
    line = ["go", "mod", "download", "-json", f"{module}@{version}"]
    output = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    return Path(json.loads(output)["Dir"])


def _write(spec: Schema, version: Schema, source: Source) -> None:
    kind: str = spec["names"]["kind"]
    schema = {
        "$comment": f"{source.module} {source.version}, {source.path}; Apache License 2.0; "
        "tools/fetch_crd_schemas.py writes it again",
        **shared(strict(version["schema"]["openAPIV3Schema"], is_object=True)),
    }
    path = FOLDER / f"{kind}-{spec['group']}-{version['name']}.json".lower()
    path.write_text(json.dumps(schema, indent=None, separators=(",", ":")) + "\n")


def strict(structural: Schema, *, is_object: bool = False) -> Schema:
    """Return the JSON schema of a structural schema, which refuses unknown fields.

    ``is_object``: it is an object of the API, with a kind and metadata.
    """
    schema = {key: structural[key] for key in structural if key in _KEPT}
    for key in ("allOf", "anyOf", "oneOf"):
        # These only say more of values whose fields are known from outside.
        if key in structural:
            schema[key] = [_values(each) for each in structural[key]]
    if "not" in structural:
        schema["not"] = _values(structural["not"])
    if structural.get("exclusiveMinimum"):
        schema["exclusiveMinimum"] = schema.pop("minimum")
    if structural.get("exclusiveMaximum"):
        schema["exclusiveMaximum"] = schema.pop("maximum")
    if structural.get("x-kubernetes-int-or-string"):
        schema["type"] = ["integer", "string"]
    if "items" in structural:
        schema["items"] = strict(structural["items"])
    if structural.get("type") == "object":
        schema |= _fields(structural, is_object=is_object)
    if structural.get("nullable") and "type" in schema:
        types = schema["type"]
        schema["type"] = [*(types if isinstance(types, list) else [types]), "null"]
    return schema


def _fields(structural: Schema, *, is_object: bool) -> Schema:
    properties = {name: strict(each) for name, each in structural.get("properties", {}).items()}
    if is_object or structural.get("x-kubernetes-embedded-resource"):
        properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        properties["metadata"] = {"type": "object"}
    fields: Schema = {"properties": properties} if properties else {}
    others = structural.get("additionalProperties")
    if isinstance(others, dict):
        fields["additionalProperties"] = strict(others)
    elif not others and not structural.get("x-kubernetes-preserve-unknown-fields"):
        fields["additionalProperties"] = False
    return fields


def _values(validation: Schema) -> Schema:
    """Return what is said of values: inside, no field is unknown that is known outside."""
    schema = {key: validation[key] for key in validation if key in _KEPT}
    for key in ("allOf", "anyOf", "oneOf"):
        if key in validation:
            schema[key] = [_values(each) for each in validation[key]]
    for key in ("items", "not"):
        if key in validation:
            schema[key] = _values(validation[key])
    if "properties" in validation:
        schema["properties"] = {
            name: _values(each) for name, each in validation["properties"].items()
        }
    return schema


def shared(schema: Schema) -> Schema:
    """Return the same schema, with parts that occur several times in its definitions."""
    counts: dict[str, int] = {}

    def count(part: Schema) -> None:
        text = json.dumps(part)
        counts[text] = counts.get(text, 0) + 1
        if counts[text] == 1:
            for child in _children(part):
                count(child)

    count(schema)
    again = (each for each, times in counts.items() if times > 1)
    names = {
        text: f"part{number}"
        for number, text in enumerate(each for each in again if len(each) >= _SHARED_MIN_CHARACTERS)
    }

    def rewritten(part: Schema, *, whole: bool = False) -> Schema:
        name = names.get(json.dumps(part))
        if name is not None and not whole:
            return {"$ref": f"#/$defs/{name}"}
        copy = dict(part)
        if "properties" in part:
            copy["properties"] = {key: rewritten(each) for key, each in part["properties"].items()}
        for key in ("items", "additionalProperties"):
            if isinstance(part.get(key), dict):
                copy[key] = rewritten(part[key])
        return copy

    definitions = {name: rewritten(json.loads(text), whole=True) for text, name in names.items()}
    return rewritten(deepcopy(schema), whole=True) | {"$defs": definitions}


def _children(schema: Schema) -> list[Schema]:
    below = [*schema.get("properties", {}).values()]
    below += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    return [each for each in below if isinstance(each, dict)]


if __name__ == "__main__":
    main()

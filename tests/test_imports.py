"""Modules that services do not load: a feature that is off costs neither time nor memory."""

import subprocess
import sys

import pytest

OPTIONAL = (
    "cryptography",
    "joserfc",
    "opentelemetry.exporter",
    "opentelemetry.sdk",
    "prometheus_client",
)
_PROGRAM = """
import importlib, sys
importlib.import_module(sys.argv[1])
sys.stdout.write(" ".join(name for name in sys.argv[2:] if name in sys.modules))
"""


@pytest.mark.parametrize("service", ["semel_broker", "semel_coordinator", "semel_group"])
def test_a_service_loads_nothing_of_features_that_are_off(service: str) -> None:
    command = [sys.executable, "-c", _PROGRAM, f"{service}.__main__", *OPTIONAL]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert loaded == ""

"""What figures depend on: the machine, and the versions of everything."""

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from bench.processes import memory_gib

_PACKAGES = ("aiosemel", "grpcio", "aiokafka", "confluent-kafka")
KAFKA_VERSION = "4.1.1"
"""As bench/kafka_node/pom.xml says."""


def machine() -> str:
    """Return one line about the machine."""
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores, {memory_gib():.0f} GiB, {_processor()}, "
        f"{platform.system()} {platform.release()} {platform.machine()}"
    )


def versions(*, kafka: bool) -> Mapping[str, str]:
    """Return the version of each program that takes part."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found | {"Apache Kafka": KAFKA_VERSION, "Java": _java()} if kafka else found


def _java() -> str:
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S607 - whichever is on the path is measured
    return said.partition("\n")[0].strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return "unknown processor"

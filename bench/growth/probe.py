"""What operations cost the processes of a cluster: processor time, latency, memory."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

from bench.growth.curve import Reading
from bench.measure import percentile
from bench.processes import processor_s, resident_mib
from semel_local import ProcessCluster

CLIENT = "client"
"""This process: the SDK, and the tools of the measurement."""
IDLE_S = 4.0
CPU_US = "µs CPU"
LATENCY_MS = "ms p50"
_WARM_UP_PARTS = 10


class Probe:
    """Looks at one cluster. Processes of one role count together."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self._cluster = cluster

    async def cost(
        self, operation: str, act: Callable[[], Awaitable[object]], times: int
    ) -> list[Reading]:
        """Do something one time after the other, after a warm-up of a tenth."""
        for _ in range(-(-times // _WARM_UP_PARTS)):
            await act()
        before = self._cpu_s()
        latencies = []
        for _ in range(times):
            started = time.perf_counter()
            await act()
            latencies.append((time.perf_counter() - started) * 1_000)
        readings = self._cpu_us(operation, before, times)
        p50 = percentile(latencies, 0.5)
        return [*readings, Reading(operation=operation, of="latency", unit=LATENCY_MS, value=p50)]

    async def once(
        self, operation: str, act: Callable[[], Awaitable[object]], *, parts: float = 1
    ) -> list[Reading]:
        """Do something once, without warm-up; the figures are those of one of its parts."""
        before, started = self._cpu_s(), time.perf_counter()
        await act()
        took_ms = (time.perf_counter() - started) * 1_000 / parts
        readings = self._cpu_us(operation, before, parts)
        return [*readings, Reading(operation=operation, of="time", unit="ms", value=took_ms)]

    async def idle(self, operation: str = "idle") -> list[Reading]:
        """Do nothing for some seconds: the cost of an idle second."""
        before = self._cpu_s()
        await asyncio.sleep(IDLE_S)
        return [
            Reading(operation=operation, of=each.of, unit=f"{CPU_US}/s", value=each.value)
            for each in self._cpu_us(operation, before, IDLE_S)
            if each.of != CLIENT
        ]

    def memory(self) -> list[Reading]:
        """Return what is resident."""
        resident: dict[str, float] = defaultdict(float)
        for name, pid in self._cluster.pids().items():
            resident[_role(name)] += resident_mib(pid)
        return [
            Reading(operation="memory", of=role, unit="MiB", value=value)
            for role, value in resident.items()
        ]

    async def restart(self, name: str) -> list[Reading]:
        """Kill a service and start it again: until it is ready, of it alone."""
        await self._cluster.kill(name)
        started = time.perf_counter()
        await self._cluster.start(name)
        took_ms = (time.perf_counter() - started) * 1_000
        pid = self._cluster.pid(name)
        assert pid is not None, f"{name} has just been started"
        operation, cpu_us = f"restart of the {_role(name)}", processor_s(pid) * 1e6
        return [
            Reading(operation=operation, of=_role(name), unit=CPU_US, value=cpu_us),
            Reading(operation=operation, of="time", unit="ms", value=took_ms),
        ]

    def _cpu_us(self, operation: str, before_s: Mapping[str, float], parts: float) -> list[Reading]:
        return [
            Reading(
                operation=operation,
                of=role,
                unit=CPU_US,
                value=(now - before_s[role]) * 1e6 / parts,
            )
            for role, now in self._cpu_s().items()
        ]

    def _cpu_s(self) -> dict[str, float]:
        used: dict[str, float] = defaultdict(float)
        for name, pid in {**self._cluster.pids(), CLIENT: os.getpid()}.items():
            used[_role(name)] += processor_s(pid)
        return used


def _role(name: str) -> str:
    """Return the role of a service: ``broker`` of ``broker-0``."""
    return name.rstrip("0123456789").removesuffix("-")

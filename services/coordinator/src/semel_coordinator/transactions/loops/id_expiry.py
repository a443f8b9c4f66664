"""Lets idle transactional ids expire."""

import asyncio
from collections.abc import Sequence
from functools import partial

import structlog

from semel_coordinator.transactions.machine import TransactionsMachine
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock
from semel_runtime.process.pause_detector import SteadyTicks

log = structlog.get_logger(__name__)

_PIECE = 1_000
"""Transactional ids that are looked at in one go, a few milliseconds."""
_JOINT_PIECE = 10
"""The same of those of joint transactions, which have many producers each."""


async def expire(
    runner: Runs, machine: TransactionsMachine, clock: Clock, *, interval_ms: int
) -> None:
    """Forget what is idle every `interval_ms`, until cancelled. To be run after `claim`."""
    ticks = SteadyTicks(interval_ms)
    while True:
        now_ms = clock.now_ms()  # It notices a jump: so it comes first.
        if ticks.is_steady(now_ms, clock.jumps):
            await expire_idle(runner, machine, clock)
        await asyncio.sleep(interval_ms / 1000)


async def expire_idle(runner: Runs, machine: TransactionsMachine, clock: Clock) -> None:
    """Forget everything that is idle now, in bounded steps.

    Nothing is forgotten any more once the clock jumps.
    """
    now_ms = clock.now_ms()
    jumps = clock.jumps
    producer_ids = await runner.run(machine.expiry.producer_ids)
    for start in range(0, len(producer_ids), _PIECE):
        if clock.jumps != jumps:
            return
        await _expire(runner, machine, producer_ids[start : start + _PIECE], now_ms)
        await asyncio.sleep(0)
    names = await runner.run(machine.expiry.joint_ids)
    for start in range(0, len(names), _JOINT_PIECE):
        if clock.jumps != jumps:
            return
        await _expire_joint(runner, machine, names[start : start + _JOINT_PIECE], now_ms)
        await asyncio.sleep(0)


async def _expire(
    runner: Runs, machine: TransactionsMachine, producer_ids: Sequence[int], now_ms: int
) -> None:
    decide = partial(machine.expiry.expire_transactional_ids, producer_ids, now_ms=now_ms)
    for transactional_id in await runner.run(decide, privileged=True):
        log.info("transactional id expired", transactional_id=transactional_id)


async def _expire_joint(
    runner: Runs, machine: TransactionsMachine, names: Sequence[str], now_ms: int
) -> None:
    decide = partial(machine.expiry.expire_joint_ids, names, now_ms=now_ms)
    for transactional_id in await runner.run(decide, privileged=True):
        log.info("id of joint transactions expired", transactional_id=transactional_id)

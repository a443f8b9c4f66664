"""A part of the orders into a database and a topic, with every process killed once.

`make demo-database` takes all of them, and kills twice.
"""

from pathlib import Path

import pytest

from demo_database.proof import DATABASE, prove
from semel_cli.demo.input import read_orders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


async def test_ledger_and_receipts_have_each_order_line_once(tmp_path: Path) -> None:
    orders = read_orders().first(6_000)
    outcome = await prove(orders, tmp_path, seed=1, rounds=1)
    assert outcome.kills[DATABASE] == 1
    assert len(outcome.kills) == 7  # coordinator, two brokers, groups, two instances
    assert outcome.ledger == outcome.receipts
    assert outcome.is_exact(orders)

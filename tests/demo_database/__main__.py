"""``python -m demo_database``: a year of pizza orders, all processes killed twice."""

import argparse
import asyncio
import secrets
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from demo_database.proof import Line, prove
from semel_cli.demo.input import read_orders

_ROUNDS = 2


def main() -> int:
    """Return 0 if ledger and receipts have each order line once."""
    parser = argparse.ArgumentParser(prog="demo_database", description=__doc__)
    parser.add_argument("--seed", type=int, help="the order of the kills; without: a random one")
    chosen = parser.parse_args().seed
    seed = secrets.randbelow(1_000_000) if chosen is None else chosen
    print(f"Seed {seed}: make demo-database SEED={seed} makes the same plan again", flush=True)
    orders = read_orders()
    with TemporaryDirectory(prefix="semel-demo-database-") as folder:
        outcome = asyncio.run(prove(orders, Path(folder), seed, rounds=_ROUNDS))
    _print_side("ledger in PostgreSQL", outcome.ledger)
    _print_side("receipts in the topic", outcome.receipts)
    killed = ", ".join(f"{name} {count}" for name, count in sorted(outcome.kills.items()))
    print(f"{outcome.kills.total()} kills in {outcome.took_s:.1f} s: {killed}")
    exact = outcome.is_exact(orders)
    print("Exactly once in both" if exact else "THE TWO SIDES DIFFER, or miss lines")
    return 0 if exact else 1


def _print_side(name: str, lines: Counter[Line]) -> None:
    income = sum(price * count for (_, price), count in lines.items())
    print(f"{name}: {lines.total():,} lines, income {income:,.2f}")


if __name__ == "__main__":
    sys.exit(main())

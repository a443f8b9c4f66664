"""``python -m untrusted``: the SDK against as many answers of a liar as wanted."""

import argparse
import asyncio
import sys
import time

from untrusted.drive import drive


def main() -> int:
    """Drive, and answer whether nothing broke."""
    parser = argparse.ArgumentParser(prog="untrusted", description=__doc__)
    parser.add_argument("--answers", type=int, default=20_000, help="give so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=(), help="these operations only")
    options = parser.parse_args()
    began = time.perf_counter()
    result = asyncio.run(drive(answers=options.answers, seed=options.seed, names=options.only))
    for title, counts in (
        ("answers", result.answers),
        ("lies by RPC", result.by_rpc),
        ("operations", result.ends),
    ):
        print(f"-- {title}")
        for name, count in counts.most_common():
            print(f"{count:>10,} {name}")
    for violation in sorted(set(result.violations)):
        print(violation)
    print(
        f"{result.answers.total():,} answers to {result.operations:,} operations in"
        f" {time.perf_counter() - began:.0f} s; the slowest, {result.slowest}, took"
        f" {result.slowest_s:.1f} s: {len(result.violations)} broke"
    )
    return bool(result.violations)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m fuzz``: as many hostile messages as wanted, over all cores."""

import argparse
import os
import sys
import time
from collections import Counter
from multiprocessing import Pool

from fuzz.attack import Result, attack

EACH = 10_000


def main() -> int:
    """Attack, and answer whether nothing broke."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="send so many")
    parser.add_argument("--seed", type=int, default=0, help="begin with this seed")
    options = parser.parse_args()
    began = time.perf_counter()
    seeds = range(options.seed, options.seed + (options.messages + EACH - 1) // EACH)
    answers: Counter[str] = Counter()
    frames = broke = 0
    with Pool(os.cpu_count()) as pool:
        for result in pool.imap_unordered(_attack, seeds):
            answers += result.answers
            frames += result.frames
            broke += len(result.violations)
            for violation in result.violations:
                print(violation)
    seconds = time.perf_counter() - began
    for name, count in answers.most_common():
        print(f"{count:>12,} {name}")
    print(f"{answers.total():,} messages and {frames:,} frames in {seconds:.0f} s: {broke} broke")
    return bool(broke)


def _attack(seed: int) -> Result:
    return attack(messages=EACH, seed=seed)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m hostile``: all attacks, or some, and a table of their costs."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hostile.attack import Attack, Verdict, judge
from hostile.attacks import ALL, fuzzing
from hostile.report import HEAD, row
from hostile.stage import opened

NAMES = tuple(each.name for each in ALL)


async def _run(attacks: Sequence[Attack]) -> bool:
    with TemporaryDirectory(prefix="semel-hostile-") as folder:
        async with opened(Path(folder)) as stage:
            print(HEAD)
            verdicts: list[Verdict] = []
            for attack in attacks:
                verdicts.append(await judge(stage, attack))
                print(row(verdicts[-1]), flush=True)
    broke = [verdict for verdict in verdicts if verdict.violations]
    for each in broke:
        print(f"\n{each.attack.name}: {each.attack.what}")
        for violation in each.violations:
            print(f"  {violation}")
    print(f"\n{len(verdicts)} attacks: {len(broke)} succeeded")
    return bool(broke)


def main() -> int:
    """Attack, and return 1 if an attack succeeded."""
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--messages", type=int, default=10_000, help="of each attack by grammar (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the attacks by grammar")
    options = parser.parse_args()
    unknown = [attack for attack in options.attacks if attack not in NAMES]
    if unknown:
        parser.error(f"no attack is named {unknown[0]!r}: choose from {', '.join(NAMES)}")
    chosen = options.attacks or NAMES
    by_name = {each.name: each for each in (*ALL, *fuzzing.attacks(options.messages, options.seed))}
    return asyncio.run(_run([by_name[name] for name in chosen]))


if __name__ == "__main__":
    sys.exit(main())

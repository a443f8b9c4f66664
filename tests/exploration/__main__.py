"""``python -m exploration``: every order of events over the real machines, for so many minutes."""

import argparse
import sys

from exploration.search import explore


def main() -> int:
    """Explore, and answer whether nothing was found."""
    parser = argparse.ArgumentParser(prog="exploration", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="go on for so long")
    parser.add_argument("--states", type=int, default=20_000_000, help="or to so many states")
    options = parser.parse_args()
    found = explore(seconds=options.minutes * 60, states_max=options.states)
    end = "all there are" if found.exhausted else f"all within {found.depth} events, and more"
    print(
        f"{found.states} states ({end}), of {found.machine_states} states of machines,"
        f" in {found.seconds:.0f} s ({found.states / found.seconds:.0f} states/s)"
    )
    if found.violation:
        print(f"VIOLATION {found.violation}")
        for number, event in enumerate(found.trace, start=1):
            print(f"    {number:3} {event}")
    return bool(found.violation)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m foreign``: builds the examples in other languages and runs them against a cluster."""

import argparse
import asyncio
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from foreign.stage import stage
from foreign.toolchains import LANGUAGES, BuildError, Example, build


def main() -> int:
    """Build and run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="foreign", description=__doc__)
    names = [example.name for example in LANGUAGES]
    parser.add_argument("languages", nargs="*", default=names, help=f"of {', '.join(names)}")
    chosen = parser.parse_args().languages
    examples = [example for example in LANGUAGES if example.name in chosen]
    missing = {each.name: each.missing() for each in examples if each.missing()}
    for name, programs in missing.items():
        print(f"{name}: needs {', '.join(programs)}, which this machine does not have")
    failed = set(missing)
    examples = [example for example in examples if example.name not in missing]
    with ThreadPoolExecutor() as pool:
        built = list(pool.map(_build, examples))
    failed |= {example.name for example, fine in zip(examples, built, strict=True) if not fine}
    failed |= asyncio.run(_run([each for each in examples if each.name not in failed]))
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return bool(failed)


def _build(example: Example) -> bool:
    began = time.perf_counter()
    try:
        build(example)
    except BuildError as error:
        print(f"{example.name}: not built: {error}")
        return False
    print(f"{example.name}: built in {time.perf_counter() - began:.0f} s")
    return True


async def _run(examples: list[Example]) -> set[str]:
    """Return the names of the examples that failed."""
    failed = set()
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as cluster:
            for example in examples:
                began = time.perf_counter()
                wrong = await cluster.play(example.run, example.name)
                wrong += await cluster.interrupt(example.run, example.name, example.stopped_status)
                for each in wrong:
                    print(f"{example.name}: {each}")
                if wrong:
                    failed.add(example.name)
                else:
                    took = time.perf_counter() - began
                    print(f"{example.name}: exact, whatever happened, in {took:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())

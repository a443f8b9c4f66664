"""`python -m bench.kafka_node`: fetch what a Kafka broker and Spark's connector for it need."""

import sys
from pathlib import Path

from bench.kafka_node.server import KafkaError, jars, missing

FOLDER = Path("build/kafka")


def main() -> int:
    """Fetch the missing programs; say so if Java or Maven are missing."""
    absent = missing()
    if absent:
        print(f"Apache Kafka needs {absent}, which this machine does not have")
        return 1
    try:
        for profile in ("broker", "connector"):
            print(f"{FOLDER / profile}: {len(jars(profile, FOLDER))} jars")
    except KafkaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

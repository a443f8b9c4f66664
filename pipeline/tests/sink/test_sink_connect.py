"""Writes within ``foreachBatch`` over Spark Connect, which tells them nothing of the stream."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import connect_job
from cluster import Cluster


def test_named_micro_batches_are_written_once_over_connect_and_others_are_refused(
    semel: Cluster, tmp_path: Path
) -> None:
    source, topic = semel.topic(2), semel.topic(2)
    values = [b"%d" % number for number in range(2 * connect_job.ROWS)]
    for partition in range(2):
        semel.send(source, values[partition::2], partition=partition)
    command = (sys.executable, connect_job.__file__, semel.bootstrap, source, topic, str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=560)
    assert done.returncode == 0, done.stderr
    assert Counter(semel.values(topic)) == Counter(values)
    assert "done again: True" in done.stdout
    assert "with Spark Connect a batch write must say both" in done.stdout

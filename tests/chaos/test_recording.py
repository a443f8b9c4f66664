"""Histories of several processes: kept as they happen, and put in order."""

import os
import subprocess
import sys
from pathlib import Path

from semel_checker.history import Invoked
from semel_checker.observations import FaultsOver
from semel_checker.operations import ProbeLog

from chaos.recording import events_path, merge, open_records

TESTS = Path(__file__).parent.parent
KILLED = """
import os, signal, sys
from pathlib import Path
from chaos.recording import events_path, open_records
from semel_checker.names import Partition
from semel_checker.operations import ProbeLog
records = open_records(events_path(Path(sys.argv[1]), "one"), began_ns=0, first=5_000)
records.recorder.invoked("one", ProbeLog(partition=Partition("t", 0)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_recorded_is_there_in_its_place(tmp_path: Path) -> None:
    ours = open_records(events_path(tmp_path, "two"), began_ns=0, first=0).recorder
    ours.observed("two", FaultsOver())
    path = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))
    subprocess.run(
        (sys.executable, "-c", KILLED, str(tmp_path)),
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )
    ours.observed("two", FaultsOver())
    first, second, third = merge(tmp_path)
    assert (first.process, second.process, third.process) == ("two", "one", "two")
    assert isinstance(second.what, Invoked)
    assert second.what.op == 5_001
    assert isinstance(second.what.operation, ProbeLog)


def test_a_line_that_was_cut_off_never_happened(tmp_path: Path) -> None:
    recorder = open_records(events_path(tmp_path, "one"), began_ns=0, first=0).recorder
    recorder.observed("one", FaultsOver())
    recorder.observed("one", FaultsOver())
    file = events_path(tmp_path, "one")
    file.write_bytes(file.read_bytes()[:-5])
    assert len(merge(tmp_path)) == 1

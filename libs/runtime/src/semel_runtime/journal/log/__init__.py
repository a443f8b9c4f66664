"""The log in front of a journal's tables: each append is one frame, one write and one sync.

An append is acknowledged once its frame is on disk and its claim still holds. The tables get it
later, in bounded steps. So the log has to keep a frame only until the tables have it durably, and
two files of a fixed size, written in turn, are enough.
"""

from semel_runtime.journal.log.frames import LoggedAppend, LogIdentity
from semel_runtime.journal.log.segments import Segments

__all__ = ["LogIdentity", "LoggedAppend", "Segments"]

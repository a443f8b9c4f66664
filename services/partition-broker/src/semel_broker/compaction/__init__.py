"""Log compaction: of each key, the newest committed record stays, and what nobody needs goes.

Theory of operation. A pass over one log has two parts. The first reads what is new since the last
pass, and notes the newest offset of each key (``keys.py``). The second reads the log from its start
and decides batch by batch what becomes of it (``rules.py``); step by step, batches are removed, or
replaced by smaller ones at the same offsets (``payloads.py``). At its end one record in the journal
says how far the log is compacted. ``compactor.py`` drives all this.

A pass ends at the last stable offset, below which every outcome is known. Its steps go upwards and
each is atomic, and each leaves a log in which every key has its newest record. So a pass may be
given up between any two steps; the next one begins from the start of the log.

Nothing but records is at stake. Where producers are, what they sent last and which transactions
are open, lies in the journal: unlike Kafka's, a batch can go as a whole although it is the last of
its producer. And committed readers are shown no markers, so a marker is needed only by those who
read uncommitted and judge for themselves.
"""

"""Log compaction: of each key, the newest committed record stays, and useless records go.

Theory of operation. A pass over one log has two parts. The first reads what is new since the last
pass, and notes the newest offset of each key (``keys.py``). The second reads the log from its start
and decides batch by batch what becomes of it (``rules.py``); step by step, batches are removed, or
replaced by smaller ones at the same offsets (``payloads.py``). At its end one record in the journal
says how far the log is compacted. ``compactor.py`` drives all this.

A pass ends at the last stable offset, below which every outcome is known. Its steps go upwards and
each is atomic, and each leaves a log in which every key has its newest record. So a pass may be
given up between any two steps; the next one begins from the start of the log.

Only records are at stake. The state of producers, their last batches and the open transactions lie
in the journal: unlike Kafka's, a batch can go as a whole although it is the last of its producer.
And committed readers see no markers, so only uncommitted readers that judge for themselves need a
marker.
"""

"""The engine on PostgreSQL: one schema for each journal, as durable as the server's standbys.

An append or a claim is a conditional statement: the epoch is mine, and the position is as
expected. An append is one round trip. A commit counts only if it ended without any trouble:
after a warning, a lost connection or an unexpected error, its outcome is unknown and the handle is
dead. See `writer.py`.

Importing this package alone does not load the driver.
"""

"""The engine on PostgreSQL: one schema for each journal, as durable as the server's standbys.

What is appended or claimed is a conditional statement: the epoch is mine, and the position is as
expected. An append is one round trip. A commit counts only if nothing at all went wrong with it:
with a warning, after a lost connection or an error that nobody knows, its outcome is unknown and
the handle is dead. See `writer.py`.

Importing this package alone does not load the driver.
"""

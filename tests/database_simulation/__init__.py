"""A simulation of applications with a database of their own, on the real cluster and the real SDK.

The database is a machine of the simulation: it takes time, loses connections, restarts, answers a
commit late or never, and goes back to a backup.
"""

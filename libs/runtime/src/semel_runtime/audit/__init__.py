"""The audit: which requests of operators are noted, and where."""

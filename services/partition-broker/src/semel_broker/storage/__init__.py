"""Stored batches: reading, checking and the tail in memory."""

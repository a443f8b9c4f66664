"""Writes frames into topics, exactly once, batch and streaming."""

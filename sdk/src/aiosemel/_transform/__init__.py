"""Consume, transform, produce: each input counts once."""

"""The RPCs of the broker."""

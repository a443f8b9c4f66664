"""The RPCs of the group coordinator."""

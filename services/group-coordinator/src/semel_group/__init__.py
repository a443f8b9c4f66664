"""Semel's group coordinator: members, assignments, committed offsets."""

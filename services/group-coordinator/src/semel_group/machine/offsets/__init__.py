"""Positions of groups: committed offsets, and offsets of open transactions. Pure."""

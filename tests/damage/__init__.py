"""Bits that flip in journal files: what a service serves then, and what `semel check` finds."""

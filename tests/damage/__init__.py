"""Bits that flip in journal files: no service serves a wrong record; `semel check` finds them."""

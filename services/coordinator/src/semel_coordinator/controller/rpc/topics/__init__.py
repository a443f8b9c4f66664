"""The RPCs about topics and their options."""

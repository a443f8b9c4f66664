"""Orders joined with the menu: what the books need, and what the kitchen needs, at once."""

"""What pages show, as plain values that templates render."""

"""One minor version apart: what the last release wrote is read, and who is of it is understood."""

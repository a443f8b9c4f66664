"""One minor version apart: services read the last release's data, and talk to its processes."""

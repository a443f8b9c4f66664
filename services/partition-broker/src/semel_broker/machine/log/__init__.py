"""One partition's log, as its records make it, and its parts."""

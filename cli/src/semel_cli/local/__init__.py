"""Commands on this machine: `semel up`, `semel check` and `semel recover`."""

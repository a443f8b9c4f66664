"""Background work of the controller: presence, liveness and the check of its own volume."""

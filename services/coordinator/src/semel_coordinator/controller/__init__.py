"""The cluster's metadata: the controller's machine, and the service that answers from it."""

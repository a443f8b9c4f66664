"""The cluster's metadata: the controller's machine, and the service that answers from it."""

CONTROLLER_ID = 0
"""The coordinator instance that owns transaction-log partition 0, whatever the layout."""

"""An instance's place in the cluster: its registration, and its durable copy of the metadata."""

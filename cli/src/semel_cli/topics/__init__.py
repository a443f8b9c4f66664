"""`semel topics`."""

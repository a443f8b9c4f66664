"""What the pages say to type: found, looked up, and run."""

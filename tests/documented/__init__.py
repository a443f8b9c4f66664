"""The commands that the pages have readers type: found, looked up, and run."""

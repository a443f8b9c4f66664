"""What the console and the command line both tell of a cluster. No web server."""

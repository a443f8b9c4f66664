"""Load tests with ghz: what is called, with which data, and a check of what comes out."""

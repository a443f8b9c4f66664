"""The examples in other languages: built, and run against a cluster that makes trouble.

`make test-clients` runs it all; what needs no toolchain of another language is in `make test`.
"""

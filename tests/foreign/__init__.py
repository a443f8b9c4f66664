"""The examples in other languages: built, and run against a cluster that makes trouble.

`make test-clients` runs it all; `make test` runs the tests that need no other language's toolchain.
"""

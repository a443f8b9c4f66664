"""Keeps gRPC from writing to the terminals of clients: import it before anything imports ``grpc``.

gRPC writes lines of its own to standard error, such as one for each handshake that fails, also
after its channel was closed. Clients are told the same in sentences, by errors and by the log.
gRPC reads its setting once, when it is imported; processes that are started later do not inherit
it, and a setting of the user stays.
"""

import os
from importlib import import_module

_VARIABLE = "GRPC_VERBOSITY"

if _VARIABLE in os.environ:
    import_module("grpc")
else:
    os.environ[_VARIABLE] = "NONE"
    import_module("grpc")
    del os.environ[_VARIABLE]

"""The wire: methods, errors as statuses, and connections with unary calls and frames.

No module above this package imports grpc to make a call. A ``Connector`` gives a ``Connection`` to
an address; the in-memory network of the tests is another ``Connector``.
"""

"""Clients against servers that they cannot trust: the SDK is driven through a server that lies.

A ``Liar`` is a real gRPC server, and a real socket for frames, in front of real services. It passes
requests on, and answers some with lies: garbage, other messages, valid answers with changed fields,
missing, repeated and swapped items, bombs, wrong errors, broken frames, or silence.
``operations`` has every public operation of the SDK; each must end in time, with a result or a
SemelError, and leave no task and no unretrieved exception behind.
"""

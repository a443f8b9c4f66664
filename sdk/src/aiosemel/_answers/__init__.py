"""Answers, checked against their requests before anything believes them.

A server may be broken, of another release, or hostile. ``CheckedConnector`` checks each answer
once, on its way from the wire to the caller: numbers are in their range, ids are there, and results
are those of the questions, in the same order. One module has the checks of one service. A check
raises ``Unfit`` for the first field that is wrong, and the connector makes one error of it, which
names the address, the RPC, the field and the value.
"""

"""Hostile input: real services get valid requests that were changed, and must stand it.

Nothing here is a bug of a client that services may punish somebody else for: whatever arrives, the
answer is a response or an error of the protocol, and everybody else goes on.
"""

"""Hostile input: real services get changed copies of valid requests, and must withstand them.

No such request may harm another client: a service answers each with a response or an error of the
protocol, and goes on serving all other clients.
"""

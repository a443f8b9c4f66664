"""Errors that no time heals: a repeat may help, but many repeats do not."""

from aiosemel.errors import InvalidResponseError, SslAuthenticationError

UNHEALED = (InvalidResponseError, SslAuthenticationError)
"""A repeat may reach another instance, or one that was just replaced. So requests are sent again,
but not until their deadline."""
UNHEALED_MAX = 3
"""How many such errors in a row a call takes before it raises the last one."""

"""The errors of commands; their messages are for users."""


class CommandError(Exception):
    """The command cannot do what was asked."""


class UsageError(Exception):
    """The command line asks for something that cannot be."""

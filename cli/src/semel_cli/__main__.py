"""The command `semel`, also as `python -m semel_cli`.

It is all imported here, and not above, so that Ctrl-C ends it without a word from the beginning.
"""

import sys

_EXIT_INTERRUPTED = 130
"""As in ``session``, which is not imported yet."""


def main() -> None:
    """Run the command line."""
    try:
        from semel_cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()

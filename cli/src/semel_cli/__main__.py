"""`python -m semel_cli`: the command, where its script is not on the path."""

from semel_cli.main import main

if __name__ == "__main__":
    main()

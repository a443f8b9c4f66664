"""``python -m aiosemel.database sql --dialect postgresql``: the tables, as SQL."""

import argparse
import sys

from aiosemel.database.contract import Dialect
from aiosemel.database.tables import tables_sql


def main() -> None:
    """Print the SQL that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m aiosemel.database")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    sql = commands.add_parser("sql", help="print the statements that create Semel's tables")
    sql.add_argument("--dialect", choices=[*Dialect], required=True)
    sys.stdout.write(tables_sql(parser.parse_args().dialect))


if __name__ == "__main__":
    main()

"""Each engine that a database of the application runs on."""

import pytest

from database_chaos.run import Engine
from semel_runtime.testing.mariadb import missing_program

_MARIADB = (
    pytest.mark.mariadb,
    pytest.mark.skipif(
        missing_program() is not None,
        reason=f"{missing_program()} is not installed (Debian: apt-get install mariadb-server)",
    ),
)


@pytest.fixture(
    params=[Engine.SQLITE, Engine.POSTGRES, pytest.param(Engine.MARIADB, marks=_MARIADB)]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine, where it is installed."""
    engine: Engine = request.param
    return engine

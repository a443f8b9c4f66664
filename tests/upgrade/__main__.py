"""`python -m upgrade VERSION`: keep the data of this release, for the tests of later ones."""

import asyncio
import sys
import tarfile
import tempfile
from pathlib import Path

from aiosemel import SemelClient
from semel_local import ProcessCluster
from upgrade.work import LONG, leave

RELEASED = Path(__file__).parent / "released"
PREPARED = "prepared"
"""The file with the id of the transaction that is prepared."""


async def make(folder: Path) -> None:
    """Fill a data folder."""
    async with (
        ProcessCluster(folder, settings=LONG) as cluster,
        SemelClient(cluster.bootstrap) as client,
    ):
        prepared = await leave(client)
    (folder / PREPARED).write_text(str(prepared))


def main() -> None:
    """Write released/VERSION.tar.xz."""
    (version,) = sys.argv[1:]
    RELEASED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        asyncio.run(make(folder))
        with tarfile.open(RELEASED / f"{version}.tar.xz", "w:xz") as archive:
            for path in sorted(folder.iterdir()):
                if path.name != "logs":
                    archive.add(path, arcname=path.name)


if __name__ == "__main__":
    main()

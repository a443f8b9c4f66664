"""What the connector asks of a cluster with access rules."""

import asyncio
from pathlib import Path

import pytest

from aiosemel import SemelClient
from aiosemel.errors import ClusterAuthorizationFailedError
from pyspark_semel.sink import topics
from pyspark_semel.sink.options import of_batch
from semel_local import ProcessCluster
from semel_local.layout import Role

RULES = {role: {"authorizer": "acls", "super_users": "User:admin"} for role in Role}


async def test_whether_anybody_answers_may_be_asked_by_everybody(tmp_path: Path) -> None:
    """Rows that name their topics need permissions for those, and none for the cluster."""
    async with ProcessCluster(tmp_path, tls=True, settings=RULES) as cluster:
        files = cluster.certificates
        assert files is not None
        options = {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(files.ca),
            "ssl.certificate.location": str(files.client_certificate),
            "ssl.key.location": str(files.client_key),
        }
        async with SemelClient(cluster.bootstrap, security=cluster.security) as client:
            with pytest.raises(ClusterAuthorizationFailedError):
                await client.admin().describe_cluster()
        await asyncio.to_thread(topics.checked, of_batch(options))

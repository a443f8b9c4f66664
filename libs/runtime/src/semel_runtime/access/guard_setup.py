"""Puts the guard of an instance together, from its settings."""

from semel_runtime.access.authorizer import Authorizer
from semel_runtime.access.guard import Guard
from semel_runtime.access.producer_tokens import ProducerTokens, read_secrets
from semel_runtime.access.quotas import Quotas
from semel_runtime.cluster.metadata_copy import ClusterCopy
from semel_runtime.config import ServiceSettings


def guard_of(settings: ServiceSettings, cluster: ClusterCopy) -> Guard | None:
    """Return the guard of the handlers; None where no listener authenticates its callers.

    Raises InvalidConfigError when the secrets cannot be read.
    """
    path = settings.producer_token_secrets_file
    if not settings.authorizes and not settings.authenticates and path is None:
        return None
    tells_apart = settings.authorizes or settings.authenticates
    return Guard(
        cluster,
        authorizer=_authorizer(settings) if settings.authorizes else None,
        tokens=None if path is None else ProducerTokens(read_secrets(path)),
        quotas=Quotas(settings.quota_times()) if tells_apart else None,
        services_are_known=settings.services_are_known,
    )


def _authorizer(settings: ServiceSettings) -> Authorizer:
    return Authorizer(
        super_users=settings.principals_of_super_users(),
        allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found,
    )

"""A layer whose transactions do one thing more: at their begin, or right before their COMMIT."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from aiosemel.database import Database, DatabaseSession, Dialect


@dataclass
class HookedDatabase:
    """Another layer, with hooks. Implements ``Database``."""

    inner: Database[object]
    at_begin: str = ""
    """A statement with which each transaction begins."""
    before_commit: Callable[[], Awaitable[None]] | None = None
    """Called once, before the next COMMIT."""

    @property
    def dialect(self) -> Dialect:
        """That of the layer."""
        return self.inner.dialect

    def joined(self, session: object) -> DatabaseSession[object]:
        """Return what the layer returns."""
        return self.inner.joined(session)

    def transaction(self) -> AbstractAsyncContextManager[DatabaseSession[object]]:
        """Open a transaction of the layer."""
        return self._transaction()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[DatabaseSession[object]]:
        async with self.inner.transaction() as statements:
            if self.at_begin:
                await statements.execute(self.at_begin)
            yield statements
            hook, self.before_commit = self.before_commit, None
            if hook is not None:
                await hook()

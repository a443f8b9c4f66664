"""The claims of a journal, and whether a journal has all that another instance knows of it. Pure.

Theory of operation. Each start of a service claims its journal: the claim epoch rises by one, and
the claim has a random token. The journal keeps its claims, each with the offset at which the
journal ended then. Other instances keep a mark of the journal: a claim, and how far the journal
went under it. A journal has all that a mark says if it has that very claim, and if it went that far
before the next claim. An older copy fails for ever, also after more starts and more
appends: the claim of the mark is not among its claims, or the next claim came too early.
"""

from itertools import pairwise

from msgspec import Struct

from semel_common.wire.messages.request_bounds import CLAIMS_MAX


class JournalMark(Struct, frozen=True, kw_only=True):
    """How far a journal went when an instance was last heard of."""

    claim_epoch: int
    claim_token: str
    """Empty: it is not known which process had the claim."""
    end_offset: int
    """Of the next record; all records below it were durable."""


class JournalClaim(Struct, frozen=True, kw_only=True):
    """One claim of a journal."""

    claim_epoch: int
    claim_token: str
    start_offset: int
    """Where the journal ended when it was claimed."""


class ClaimHistory(Struct, frozen=True, kw_only=True):
    """The last claims of a journal, oldest first."""

    claims: tuple[JournalClaim, ...] = ()
    recovered_epoch: int = 0
    """The claim epoch of the last `semel recover`: marks of older claims count no longer."""

    def with_claim(self, claim: JournalClaim) -> "ClaimHistory":
        """Return the history with one claim more; the same if it is there already."""
        if self.claims and self.claims[-1].claim_epoch == claim.claim_epoch:
            return self
        claims = (*self.claims, claim)[-CLAIMS_MAX:]
        return ClaimHistory(claims=claims, recovered_epoch=self.recovered_epoch)

    @property
    def is_in_order(self) -> bool:
        """Whether epochs rise and offsets do not fall, as in the history of any journal."""
        return all(
            one.claim_epoch < other.claim_epoch and one.start_offset <= other.start_offset
            for one, other in pairwise(self.claims)
        )


def missing(history: ClaimHistory, mark: JournalMark, *, end_offset: int) -> str:
    """Say what a journal that ends at `end_offset` lacks of a mark; empty: nothing.

    A claim between two that are known may be of a release that keeps no history.
    """
    if mark.claim_epoch < history.recovered_epoch:
        return ""
    later = [claim for claim in history.claims if claim.claim_epoch > mark.claim_epoch]
    own = [claim for claim in history.claims if claim.claim_epoch == mark.claim_epoch]
    if not own and not later:
        return f"it has never had claim epoch {mark.claim_epoch}"
    if own and mark.claim_token not in {"", own[0].claim_token}:
        return f"another process had claim epoch {mark.claim_epoch}"
    end = later[0].start_offset if later else end_offset
    if end < mark.end_offset:
        return (
            f"under claim epoch {mark.claim_epoch} it ends at offset {end}, not at"
            f" {mark.end_offset} or above"
        )
    return ""

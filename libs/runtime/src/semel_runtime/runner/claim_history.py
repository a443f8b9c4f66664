"""The history of a journal's claims, kept as a note of the journal."""

import msgspec

from semel_runtime.claims import ClaimHistory, JournalClaim
from semel_runtime.journal.contract import Claim, Journal

_NOTE = "claims"


async def remember_claim(journal: Journal, claim: Claim, token: str) -> ClaimHistory:
    """Add a claim to the history, durably, and return the history.

    It comes before the first record under the claim, and before others hear of the claim.
    """
    noted = journal.note(_NOTE)
    history = msgspec.json.decode(noted, type=ClaimHistory) if noted else ClaimHistory()
    own = JournalClaim(claim_epoch=claim.epoch, claim_token=token, start_offset=claim.next_offset)
    return await _keep(journal, history.with_claim(own))


async def remember_recovery(journal: Journal, claim: Claim, token: str) -> None:
    """Let the history begin with the claim of a recovery, durably."""
    own = JournalClaim(claim_epoch=claim.epoch, claim_token=token, start_offset=claim.next_offset)
    await _keep(journal, ClaimHistory(claims=(own,), recovered_epoch=claim.epoch))


async def _keep(journal: Journal, history: ClaimHistory) -> ClaimHistory:
    await journal.set_note(_NOTE, msgspec.json.encode(history).decode())
    return history

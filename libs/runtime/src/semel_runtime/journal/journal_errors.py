"""Errors of a journal, by the action that the caller must take.

These errors stay inside a process: no client sees them. `JournalFencedError` is final;
`JournalTooLargeError` means definitely not written; after any other error of a write its effect is
unknown (`JournalUnknownError`) and the handle is dead: only a new claim, and a read from the last
acknowledged offset, tell what happened.
"""


class JournalError(Exception):
    """Base of all errors of a journal."""


class JournalFencedError(JournalError):
    """Another owner has claimed the journal: nothing was written, and this handle is done."""

    def __init__(self, *, claim_epoch: int, stored_epoch: int) -> None:
        super().__init__(
            "another process with the number of this one has claimed the journal since: it has"
            f" claim epoch {stored_epoch}, this one {claim_epoch}. If it was not moved on purpose,"
            " two instances are started with one number."
        )
        self.claim_epoch = claim_epoch
        self.stored_epoch = stored_epoch


class JournalTooLargeError(JournalError):
    """The write is over a limit and was definitely not made; the handle lives on."""

    def __init__(self, *, size_bytes: int, size_bytes_max: int) -> None:
        super().__init__(f"write of {size_bytes} bytes is over the limit of {size_bytes_max}")
        self.size_bytes = size_bytes
        self.size_bytes_max = size_bytes_max


class JournalUnknownError(JournalError):
    """Whether the write took effect is unknown; the handle is dead."""


class JournalCorruptError(JournalError):
    """The bytes read differ from the bytes written; the journal did not serve them."""


class JournalOpenError(JournalError):
    """The journal cannot be opened; the message is a sentence that says what to do."""


class JournalNewerError(JournalOpenError):
    """The journal was written by a release that knows more than this one."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the journal has {what}, of a kind that this release does not know: it was written by"
            " a newer one. Start that release again, or a newer one; nothing was changed."
        )


class JournalInUseError(JournalOpenError):
    """Another process on this machine has the journal open."""

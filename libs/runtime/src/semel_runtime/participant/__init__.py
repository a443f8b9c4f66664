"""What every participant of transactions does alike: partitions at a broker, and consumer groups.

Theory of operation (protocol.md, sections 4 to 6). A participant takes what a transaction writes in
sequence order, and nothing of an epoch whose outcome it knows: ``producer_state.py``. It learns the
outcome by marker, from no coordinator that was deposed: ``coordinator_epochs.py``. If the marker
does not come, it asks: ``inquiry.py`` says which transactions are due and how to read the answers,
``inquiry_loop.py`` asks. Producers that are idle for long are forgotten: ``producer_expiry.py``
says when that is safe, ``producer_expiry_loop.py`` does it. The settings are in
``participant_settings.py``.

What a transaction holds, and what an outcome does with it, is each service's own.
"""

"""What every participant of transactions does alike: partitions at a broker, and consumer groups.

Theory of operation (protocol.md, sections 4 to 6). A participant takes what a transaction writes in
sequence order, and nothing of an epoch whose outcome it knows: ``producer.py``. It learns the
outcome by marker, from no coordinator that was deposed: ``coordinator_epochs.py``. If the marker
does not come, it asks: ``inquiry.py`` says which transactions are due and what the answers mean,
``inquiry_loop.py`` asks. What is idle for long is forgotten: ``expiry.py`` says when that is safe,
``expiry_loop.py`` does it. The settings are in ``settings.py``.

What a transaction holds, and what an outcome does with it, is each service's own.
"""

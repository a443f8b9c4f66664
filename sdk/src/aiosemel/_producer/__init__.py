"""The inside of the producers: two pure machines, and the sender that moves their bytes.

``transaction_manager`` knows what a transactional producer may do; ``accumulator`` holds records
until brokers have acknowledged them; ``sender`` does the I/O for both.
"""

"""Files for the payloads of large appends, beside a table that says where each payload lies.

The names of the files are `journal.payloads-NUMBER`. Each byte goes to the disk once. A range of a
file is written once, and never again: its space comes back when the file is removed, or by a hole.
"""

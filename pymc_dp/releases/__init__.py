"""Releases: exact statistics of records, noise on them once, and the ``Release`` that all later steps see instead of records."""

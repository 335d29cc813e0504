"""Runs going on in this process. Start reading at registry.py: `registry.current()` is the door."""

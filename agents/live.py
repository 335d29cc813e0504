"""Runs going on in this process."""

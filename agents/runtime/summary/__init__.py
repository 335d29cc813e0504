"""The rolling summary: when it is made, from what, by whom, and what it may hide. Start reading at rolling.py."""

"""What the executors share (tables, charts) and what bubblewrap starts a command with (filter, inside, carrying)."""

"""Names of the background jobs."""

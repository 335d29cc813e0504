"""Settings in, Runner out."""

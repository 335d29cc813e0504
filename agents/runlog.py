"""The live log of a run's wire frames."""

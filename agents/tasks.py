"""Celery's door."""

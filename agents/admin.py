"""Staff's view."""

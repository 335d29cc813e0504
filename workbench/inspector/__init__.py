"""What a run did and what the model saw of it. Start at page.py."""

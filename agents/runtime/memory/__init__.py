"""What outlives a conversation. Start reading at memories.py."""

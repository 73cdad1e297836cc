"""What a check is asked, and which rules look at which file."""

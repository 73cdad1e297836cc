"""The language server: findings while people type, and what the last run knows of a line."""

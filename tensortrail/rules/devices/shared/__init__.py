"""What several rules about devices ask, in folders by subject."""

"""The page and the card that every output carries."""

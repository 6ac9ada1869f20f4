"""Turns → the messages that a trainer reads, and which text of them is trained."""

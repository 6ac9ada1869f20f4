"""Answers about specs, runs and outputs: what the reading commands say. Nothing here makes data."""

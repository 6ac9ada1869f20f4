"""Sinks: finished rows → files that a trainer takes as they are."""

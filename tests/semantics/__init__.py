"""Whether the engine means what semantics.md says."""

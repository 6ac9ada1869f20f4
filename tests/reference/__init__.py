"""A second implementation of the semantics: slow, obvious, plain Python over dicts. For tests only."""

"""AST → text, and tokens → text in the one layout."""

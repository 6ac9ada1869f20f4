"""Text → parse tree over every error: scanner, LALR machine, recovery, and what each error is called."""

"""Parse tree → AST: one function for each rule or alias of the grammar."""

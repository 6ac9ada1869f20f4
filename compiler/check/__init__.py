"""Names, types and rules: a program becomes plans, or all of its errors."""

"""The second engine: typed expressions and comparisons of rows as SQL for DuckDB.

The library itself is imported where a connection is opened, so that the command line starts without it.
"""

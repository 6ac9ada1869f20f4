"""What was computed before and need not be computed again: states between steps, and what sinks wrote.

A key says all that a result depends on (`keys`); an entry of the cache holds a state, what the steps before it did, or
the files of a sink (`checkpoint`, `memo`). Nothing here changes a byte of an output: it only says where to begin.
`unchanged` finds that there is nothing to do at all.
"""

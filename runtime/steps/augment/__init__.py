"""`augment NAME(…)`: copies of runs that teach what the runs themselves teach too seldom (semantics 30).

A copy is `parent#a<label>.<k>`. Originals stay. A run of the validation split makes none, so that no copy is ever
validated; a copy that would contradict itself is not made, and the ledger says why.
"""

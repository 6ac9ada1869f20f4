"""Steps of a plan: each module registers the functions of some operations with `step.apply`.

Every function is pure: a state and its place in, the next state out; what it did is in the ledger.
"""

from curatec.runtime.steps import decompose, decontaminate, edits, filters, join, near, redact, split, view

REGISTERED = (decompose, decontaminate, edits, filters, join, near, redact, split, view)

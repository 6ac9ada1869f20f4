"""Steps of a plan: each module registers the functions of some operations with `step.apply`.

Every function is pure: a state and its place in, the next state out; what it did is in the ledger.
"""

from curatec.runtime.steps import (
    augment,
    decompose,
    decontaminate,
    edits,
    filters,
    join,
    near,
    quotas,
    redact,
    render,
    split,
    view,
)

REGISTERED = (augment, decompose, decontaminate, edits, filters, join, near, quotas, redact, render, split, view)

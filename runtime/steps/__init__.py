"""Steps of a plan: each module registers the functions of some operations with `step.apply`.

Every function is pure: a state and its place in, the next state out; what it did is in the ledger.
"""

from curatec.runtime.steps import (
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
from curatec.runtime.steps.augment import distractors, rebind, recover

REGISTERED = (
    distractors,
    rebind,
    recover,
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

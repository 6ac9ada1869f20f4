"""`emit preference`."""

from __future__ import annotations

from curatec.compiler import plan
from curatec.runtime.sinks.place import Place
from curatec.runtime.sinks.written import Written


def write(place: Place, target: plan.Preference) -> Written:
    raise NotImplementedError

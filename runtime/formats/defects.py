"""Every defect an adapter may note on a trajectory, with its meaning.

A defect says what was odd about a record; the record is kept as it was, and a spec decides (`drop where "repr_args" in
defects`). The names are stable: they are part of the trajectory's digest.
"""

from __future__ import annotations

DEFECTS: dict[str, str] = {
    # Reading: what the bytes had that JSON or UTF-8 does not allow, or that a reader would lose.
    "nan": "the record holds NaN, Infinity or a number beyond the range of a double; it reads as null",
    "lone_surrogate": "a string held half of a surrogate pair; it reads as U+FFFD",
    "invalid_utf8": "the record held bytes that are not UTF-8; each run of them reads as U+FFFD",
    "duplicate_key": "an object had the same key twice; the last one counts",
    # The record as a whole.
    "empty_run": "the record has no turns (usually a run that crashed before its first turn)",
    "ends_on_tool": "the last turn is a tool result: the agent never answered it",
    "ends_on_call": "the last turn makes calls that nothing answers",
    "task_disagrees": "the run was judged by other actions than the task that it names has; the task is not taken",
    "unknown_role": "a turn has a role that the format does not define; it is kept as an event",
    "bad_value": "a known field (reward, time, trial, ...) has a value of the wrong kind; null here, kept in meta",
    "invalid_tools": "the tool schemas are not a list of objects; they are kept in meta",
    # Calls.
    "missing_call_id": "a call has no id although the format has one for every call",
    "duplicate_call_id": "two calls of the trajectory have the same id",
    "missing_call_name": "a call has no tool name",
    "missing_args": "a call has no arguments at all (absent, null or an empty string)",
    "repr_args": "the arguments are a Python literal instead of JSON; read with literal_eval, raw text kept",
    "double_encoded_args": "the arguments are a JSON string that holds JSON; decoded once more, raw text kept",
    "non_object_args": "the arguments are valid JSON but not an object; raw text kept, args null",
    "invalid_args": "the arguments are neither JSON nor a Python literal, or hold NaN; raw text kept, args null",
    "unparsed_call": "an assistant's text holds a call that could not be read, or that the format has no place for",
    # Results.
    "orphan_call": "a call has no result although the run goes on after it",
    "orphan_result": "a result answers no call",
    "missing_result_id": "a result has no call id although the format has one for every result; linked by position",
    "packed_results": "one tool turn holds the results of several calls; only the first call is linked to it",
    # Content.
    "content_not_text": "a turn's content is neither text, parts nor null; it is kept as JSON text",
}

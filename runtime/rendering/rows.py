"""What is asked of a renderer, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from curatec.runtime.conversation.messages import Message
from curatec.runtime.conversation.spans import Trained


class Row(NamedTuple):
    """One conversation. `tools` are JSON texts of schemas. `marks` are one a message, None where nothing is trained; a
    weight above 0 trains, labels do not say how much. `except_reasoning` is the spec's: it leaves out the empty blocks
    of reasoning that a template writes as well, which no mark can say. `prompt` adds what asks for the model's turn."""

    messages: Sequence[Message]
    tools: Sequence[str] | None = None
    marks: Sequence[Trained] | None = None
    except_reasoning: bool = False
    prompt: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """`labels` has the id of each trained token and -100 elsewhere. `n_straddling` counts tokens that hold trained and
    other text; they are not trained. With usual templates there are none: borders are special tokens."""

    text: str
    input_ids: list[int]
    labels: list[int]
    n_tokens: int
    n_trained: int
    n_straddling: int = 0


class Refusal(str):
    """Why a row is refused, one of a few words that can be counted. `detail` is what the template said.

    - `no_messages`
    - `nested_too_deeply`, `lone_surrogate`: arguments or schemas that no tokenizer reads
    - `special_token_in_text`: a text holds a special token, which would be read as one
    - `template_raises`: the template refused the conversation
    - `template_drops_turns`: nothing of a message is shown
    - `template_rewrites_text`: a text is shown in part, or otherwise than it was written
    - `template_hides_trained_text`: a text that is to be trained is not shown
    - `template_unclear`: what is trained cannot be told apart for certain
    """

    __slots__ = ("detail",)
    detail: str

    def __new__(cls, reason: str, detail: str = "") -> Refusal:
        made = super().__new__(cls, reason)
        made.detail = detail
        return made

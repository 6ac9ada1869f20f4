"""How far a trainer can honour an sft sink's mask, worked out from the rows, and the settings that do.

TRL 1.16 knows two masks without tokenised input: all assistant messages (`assistant_only_loss`, which needs a chat
template with `{% generation %}`), and everything behind a prompt (columns `prompt` and `completion`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from curatec.compiler import plan
from curatec.runtime.conversation.training import Trainable
from curatec.runtime.sinks import trainer
from curatec.runtime.sinks.columns import Col

if TYPE_CHECKING:
    from curatec.runtime.rendering import Renderer

Mask = Literal["assistant", "completion", "messages", "spans", "tokens"]


@dataclass
class Masks:
    """What the assistant messages of all rows have in common."""

    all_whole: bool = True  # every assistant message is trained, with all that it shows
    parts: bool = False  # somewhere only a part of a message is trained
    reasoning: bool = False  # some message shows reasoning

    def join(self, other: Masks) -> None:
        """What other rows add."""
        self.all_whole &= other.all_whole
        self.parts |= other.parts
        self.reasoning |= other.reasoning

    def see(self, row: Trainable) -> None:
        """What one row adds."""
        marked = [mark for message, mark in zip(row.messages, row.marks, strict=True) if message.role == "assistant"]
        self.reasoning |= any(message.reasoning for message in row.messages)
        self.all_whole &= all(mark.weight and mark.whole for mark in marked)
        self.parts |= any(mark.weight and not mark.whole for mark in marked)

    def kind(self, target: plan.Sft, *, rendered: bool) -> Mask:
        if rendered and target.format == "trl":
            return "tokens"
        if self.parts:
            return "spans"
        if target.loss.only_last:
            return "completion"
        return "assistant" if self.all_whole else "messages"


_ABOUT: dict[Mask, str] = {
    "assistant": """\
Every assistant message is trained, whole. These arguments say exactly that, with a chat template that has
{% generation %}; TRL takes its own for the models that it knows.""",
    "completion": """\
Only the last message of a row is trained, whole. TRL reads `prompt` and `completion` and masks the prompt: exact.""",
    "messages": """\
Some assistant messages are context only ("weight": 0). TRL looks at no weights: with a usual chat template it would
train them too. Exact ways: a template whose {% generation %} stands only around messages without that key, labels
made from `trained`, or `loss … only last` in the spec.""",
    "spans": """\
Parts of messages are left out (such as reasoning). No TRL setting over `messages` says that, and these arguments
would train those parts too. Exact ways: `input_ids` and `labels` made from `trained`, or `reasoning strip` in the
spec, which shows no reasoning at all.""",
    "tokens": """\
`labels` has -100 for every token that is not trained: exact. TRL takes rows with `input_ids` as they are.""",
}
_ABOUT_OPENAI: dict[bool, str] = {
    False: 'Assistant messages with "weight": 0 are not trained, all others are.',
    True: "Parts of messages are left out. A weight is about a whole message, so they would be trained too.",
}
_EXACT = "Whether the arguments below train exactly what `trained` says."
_REASONING = """
Rows show reasoning: the template must show it in every turn (Qwen3's own leaves out that of earlier turns)."""
_NO_FIT = "TRL cuts rows at 1024 tokens unless told."
_FIT = "From `fit`, which counted estimated tokens: TRL cuts a row that has more by its tokenizer."
_FIT_EXACT = "From `fit`, which counted the tokens of the row: nothing is cut."
_ESTIMATE = "n_tokens and n_trained are UTF-8 bytes / 4: no tokenizer is named."
_COUNTED = "Of the whole row as the template shows it, tools too; n_trained are those with a label."
_TRAINERS = {"trl": "trl.SFTTrainer", "openai": "openai.fine_tuning", "verl": "verl.trainer.sft_trainer"}


def settings(
    target: plan.Sft,
    masks: Masks,
    files: trainer.Setting,
    columns: tuple[Col, ...],
    *,
    in_order: bool,
    renderer: Renderer | None = None,
) -> dict[str, trainer.Setting | Any]:
    """The entries of trainer.yaml. `renderer` is the one that the rows were counted with."""
    mask = masks.kind(target, rendered=renderer is not None)
    exact = mask in ("assistant", "completion", "tokens") or (target.format != "trl" and mask == "messages")
    head: dict[str, trainer.Setting | Any] = {
        "trainer": _TRAINERS.get(target.format, target.format),
        "format": trainer.about_format(target.format),
        "files": files,
        "mask": trainer.Setting(mask, _about(mask, target)),
        "exact": trainer.Setting(exact, _EXACT + (_REASONING if masks.reasoning and mask != "tokens" else "")),
        **trainer.tokens(renderer, _ESTIMATE, _COUNTED),
    }
    args = {"args": _args(target, mask, in_order, counted=renderer is not None)} if target.format == "trl" else {}
    return {**head, **args, "columns": trainer.about(columns)}


def _about(mask: Mask, target: plan.Sft) -> str:
    return _ABOUT[mask] if target.format == "trl" else _ABOUT_OPENAI[mask == "spans"]


def _args(target: plan.Sft, mask: Mask, in_order: bool, *, counted: bool) -> dict[str, trainer.Setting | Any]:
    by: dict[Mask, dict[str, bool]] = {
        "tokens": {},
        "completion": {"assistant_only_loss": False, "completion_only_loss": True},
    }
    fit = _NO_FIT if target.fit_tokens is None else _FIT_EXACT if counted else _FIT
    return {
        "max_length": trainer.Setting(target.fit_tokens, fit),
        "packing": trainer.Setting(False, "Packing loses assistant masks and the borders of rows."),
        "shuffle_dataset": False,
        **trainer.order(in_order),
        **by.get(mask, {"assistant_only_loss": True}),
        "remove_unused_columns": True,
    }


def notes(masks: Masks, target: plan.Sft, *, rendered: bool) -> tuple[str, ...]:
    """What a reader of the files must know, for the card."""
    mask = masks.kind(target, rendered=rendered)
    known = ["Rows end with their last trained message."]
    if mask == "tokens":
        known.append("`input_ids` and `labels` are the rows as the chat template shows them; the mask is exact.")
    if mask == "spans" or (mask == "messages" and target.format == "trl"):
        known.append("The mask is exact in `trained`; `messages` alone do not carry it (see `trainer.yaml`).")
    return tuple(known)

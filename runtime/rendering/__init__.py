"""Conversations → the exact tokens of a model, and which of them are trained."""

from curatec.runtime.rendering.load import load
from curatec.runtime.rendering.renderer import Renderer
from curatec.runtime.rendering.rows import Refusal, Rendered, Row

__all__ = ["Refusal", "Rendered", "Renderer", "Row", "load"]

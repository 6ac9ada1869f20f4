"""The whole AST under one name: `from curatec.dsl import ast`."""

from curatec.dsl.declarations import *  # noqa: F403
from curatec.dsl.expr import *  # noqa: F403
from curatec.dsl.nodes import *  # noqa: F403
from curatec.dsl.steps import *  # noqa: F403

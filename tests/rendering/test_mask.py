"""Places of a text to tokens: against a second, slow way that looks at every code point."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from curatec.runtime.rendering.leaves import Place
from curatec.runtime.rendering.mask import masked
from tests.rendering.conftest import Renderers
from tests.rendering.styles import HERMES, TINY


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_masks_of_random_places(renderers: Renderers, data: st.DataObject) -> None:
    renderer = renderers(data.draw(st.sampled_from([TINY, HERMES])))
    words = st.sampled_from(["the order ", " yes", "\n\n", "日本", "🙂", "<|im_end|>", "\n", '{"a": 1}', "  ", "é"])
    text = "".join(data.draw(st.lists(words, min_size=1, max_size=12)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    # Every other stretch, so that places are apart.
    places = [Place(*cuts[i : i + 2]) for i in range(0, len(cuts) - 1, 2)]
    encoding = renderer.tokenizer.encode(text, add_special_tokens=False)
    found = masked(text, encoding.ids, encoding.offsets, places, renderer.added)
    inside = {at for place in places for at in range(*place)}
    for label, token, (start, end) in zip(found.labels, encoding.ids, encoding.offsets, strict=True):
        assert label == (token if inside >= set(range(start, end)) else -100)
    across = [
        1 for start, end in encoding.offsets
        if (within := inside & set(range(start, end))) and len(within) < end - start
    ]  # fmt: skip
    assert found.straddling >= len(across)
    assert (found.straddling == 0) == (not across)


def test_a_special_token_that_swallows_the_space_beside_it() -> None:
    """As Phi's do: the token's own text decides."""
    text = "ab<|end|>\n"
    found = masked(text, [7, 9], [(0, 2), (2, 10)], [Place(0, 9)], {9: "<|end|>"})
    assert found == ([7, 9], 0)
    assert masked(text, [7, 9], [(0, 2), (2, 10)], [Place(0, 9)], {}) == ([7, -100], 1)


def test_no_tokens() -> None:
    assert masked("", [], [], [Place(0, 0)], {}) == ([], 0)

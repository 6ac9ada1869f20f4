"""Texts that are nearly the same.

Likeness is the Jaccard index of two texts' sets of shingles: how many they share over how many there are in either. A
shingle is three words in a row (`shingles.py`). Which pairs are worth a comparison is asked of MinHash signatures by
bands (`bands.py`), or of the rarest shingles where texts are few (`rare.py`); what is compared is compared exactly
(`sketches.py`).
"""

from curatec.runtime.near.components import components
from curatec.runtime.near.sketches import Sketches

__all__ = ["Sketches", "components"]

"""What the benchmarks compare is the same job. Their scripts import each other by name, as in their own folder."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

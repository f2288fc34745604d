"""Makes the Nexmark generator and queries of benchmarks/nexmark importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

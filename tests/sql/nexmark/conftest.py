"""Nexmark's generator and queries stand in benchmarks/nexmark."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

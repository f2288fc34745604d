"""Whole jobs in this process, without Spark; what the test files share stands beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

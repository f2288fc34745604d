"""Makes the module importable that the tests and the recorder share."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

"""What Graphiti and Kuzu do unasked is switched off by importing this before them.

Graphiti reports every start to a telemetry service and keeps an id for that in the home folder, and it reads a file
``.env`` of whatever folder it is started in or below.
"""

from __future__ import annotations

import logging
import os
import warnings

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
os.environ["PYTHON_DOTENV_DISABLED"] = "1"
# Graphiti 0.31 says so with every database that it opens; README says what it means.
warnings.filterwarnings("ignore", message="The Kuzu backend is deprecated", category=DeprecationWarning)
logging.getLogger("graphiti_core").setLevel(logging.WARNING)

"""Switches off side effects of Graphiti and Kuzu; must be imported before them.

Graphiti reports every start to a telemetry service and stores an id for that in the home folder, and it reads a file
``.env`` of the current folder or a folder above it.
"""

from __future__ import annotations

import logging
import os
import warnings

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
os.environ["PYTHON_DOTENV_DISABLED"] = "1"
# Graphiti 0.31 warns with every database that it opens; README explains the warning.
warnings.filterwarnings("ignore", message="The Kuzu backend is deprecated", category=DeprecationWarning)
logging.getLogger("graphiti_core").setLevel(logging.WARNING)

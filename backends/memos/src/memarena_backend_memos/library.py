"""Imports MemOS without its side effects: log files, settings from files, schedulers, network access.

The package's ``__init__`` imports its servers, schedulers and their clients, and its logging writes to a file and
replaces the root logger. To avoid both, the package is imported without running its ``__init__``, and its logging is
marked as configured.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import warnings
from pathlib import Path

PACKAGE = "memos"
_OWN_PREFIXES = ("MEMOS_", "MOS_", "CUSTOM_LOGGER_", "NACOS_", "QDRANT_")
"""Prefixes of the environment variables that the library reads."""
_LOUD = ("memos", "transformers", "httpx", "qdrant_client")
"""Loggers of which only errors are shown."""


def keep_to_itself(folder: Path) -> None:
    """Prepare the process for ``import memos.…``. Call it once, before any module of the library is imported.

    Afterwards the library reads only the settings made here, and writes only below ``folder``. Raises
    ModuleNotFoundError if it is not installed.
    """
    if PACKAGE in sys.modules:
        raise RuntimeError(f"{PACKAGE} is imported already")
    for name in [name for name in os.environ if name.startswith(_OWN_PREFIXES)]:
        del os.environ[name]
    os.environ |= {
        "MEMOS_BASE_PATH": str(folder),
        "PYTHON_DOTENV_DISABLED": "1",  # it would read a .env of any folder above
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HOME": str(folder / "huggingface"),
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    }
    for name in _LOUD:
        # Their warnings quote replies, which have private content; the memory counts unusable replies itself.
        logging.getLogger(name).setLevel(logging.ERROR)
    # "Payload indexes have no effect in the local Qdrant", with every store that is opened.
    warnings.filterwarnings("ignore", module=r"qdrant_client\..*|memos\..*")
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed: memarena backends install memos", name=PACKAGE)
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    log = importlib.import_module(f"{PACKAGE}.log")
    log._LOGGING_CONFIGURED_PID = os.getpid()  # type: ignore[attr-defined]

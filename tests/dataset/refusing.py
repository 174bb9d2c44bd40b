"""Returns the error line for a data set that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset


def refusal(path: Path) -> str:
    """Return the message with which a strict ``open_dataset`` refuses the folder."""
    with pytest.raises(DatasetError) as caught:
        open_dataset(path).close()
    message = str(caught.value)
    assert "\n" not in message
    return message

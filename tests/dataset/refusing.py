"""The line with which a data set that cannot be used is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset


def refusal(path: Path) -> str:
    """The message with which a strict opening refuses."""
    with pytest.raises(DatasetError) as caught:
        open_dataset(path).close()
    message = str(caught.value)
    assert "\n" not in message
    return message

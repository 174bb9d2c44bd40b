"""Defines notices in the log: what a backend reports with its results, as a code, a count and a message."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from memarena.log.base import Record


class Notice(Record):
    """One notice of an Ingest or a Search, as SPEC.md defines it; code and message may have been cut."""

    code: str
    count: int = 1
    message: str = ""

    @property
    def text(self) -> str:
        """Return it as text: ``sessions_given ×3: so far 4``."""
        return f"{self.code} ×{self.count}" + (f": {self.message}" if self.message else "")


_OLD_LINE = re.compile(r"(?P<code>.*?) ×(?P<count>\d+)(?:: (?P<message>.*))?", re.DOTALL | re.ASCII)
"""Old logs only (schema versions 1 to 3), in which a notice is one line: ``sessions_given ×3: so far 4``."""


def _of_old_log(value: object) -> object:
    """Return the fields of a notice that an old log has as a line; any other value unchanged."""
    if not isinstance(value, str):
        return value
    if (line := _OLD_LINE.fullmatch(value)) is None:
        raise ValueError(f"expected a notice as CODE ×COUNT: MESSAGE, got {value[:80]!r}")
    return {"code": line["code"], "count": int(line["count"]), "message": line["message"] or ""}


Notices = tuple[Annotated[Notice, BeforeValidator(_of_old_log)], ...]

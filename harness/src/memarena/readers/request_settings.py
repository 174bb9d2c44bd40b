"""Defines a user's changes to the requests to a reader, and the limits on their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from memarena.gateway import Upstream

DEFAULT_PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Fields that are added to each generation request (``params``) or omitted (``drop``), and the server's limits."""

    params: Mapping[str, JsonValue] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    concurrency: int = 0
    """Most requests at once; 0: no limit."""
    requests_per_minute: float = 0.0
    """0: no limit."""
    patience_s: float = DEFAULT_PATIENCE_S
    """How long a request waits for a busy server in total."""

    def applied(self, upstream: Upstream) -> Upstream:
        """Return the model with these settings; fields that the harness sets stay unless they are set here."""
        return replace(
            upstream,
            extra_body={**upstream.extra_body, **self.params},
            drop=self.drop,
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            patience_s=self.patience_s,
        )

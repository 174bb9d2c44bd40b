"""What a user changes in the requests to a reader, and how many of them it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from memarena.gateway import Upstream

DEFAULT_PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Fields put into every generation request (``params``) or left out (``drop``), and the limits of the server."""

    params: Mapping[str, JsonValue] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    concurrency: int = 0
    """Most requests at once; 0: as many as there are."""
    requests_per_minute: float = 0.0
    """0: as many as there are."""
    patience_s: float = DEFAULT_PATIENCE_S
    """How long a request waits for a server that is busy, altogether."""

    def applied(self, upstream: Upstream) -> Upstream:
        """The same model with these settings; fields of our own stay unless they are set here."""
        return replace(
            upstream,
            extra_body={**upstream.extra_body, **self.params},
            drop=self.drop,
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            patience_s=self.patience_s,
        )

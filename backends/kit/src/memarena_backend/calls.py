"""Gives a memory its view of the current RPC: time left, whether the client still waits, and the models to call."""

from __future__ import annotations

from typing import Protocol

import grpc

from memarena_backend.errors import CallError
from memarena_backend.records import ModelAccess


class RpcContext(Protocol):
    """The part of ``grpc.ServicerContext`` that says whether a call is alive."""

    def is_active(self) -> bool: ...
    def time_remaining(self) -> float | None: ...


class Call:
    """The call that a memory works for. ``models`` is None if no model may be called."""

    def __init__(self, context: RpcContext | None, models: ModelAccess | None = None) -> None:
        self._context = context
        self.models = models

    @classmethod
    def internal(cls) -> Call:
        """Return a call without a client, deadline or models, for work that the server starts itself."""
        return cls(None)

    def without_models(self) -> Call:
        """Return the same call without access to models, for work that the caller did not ask for."""
        return Call(self._context)

    def is_active(self) -> bool:
        """Whether the client still waits: False once it cancelled or the deadline passed."""
        return self._context is None or self._context.is_active()

    def remaining_s(self) -> float | None:
        """Return the seconds until the deadline, 0.0 if it has passed, None if there is none."""
        remaining = None if self._context is None else self._context.time_remaining()
        return None if remaining is None else max(0.0, remaining)

    def check(self) -> None:
        """Raise CallError if the client no longer waits: DEADLINE_EXCEEDED if the deadline passed, else CANCELLED."""
        if self.remaining_s() == 0.0:
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline passed")
        if not self.is_active():
            raise CallError(grpc.StatusCode.CANCELLED, "the client cancelled the call")

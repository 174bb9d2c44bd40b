"""Tokens: each stands for one RPC, is good while that runs, and knows the calls that were made with it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memarena.gateway.calls import OpenCall, RefusedError
from memarena.gateway.types import CallContext, GatewayError
from memarena.log.records import GatewayCall


def random_token() -> str:
    """A token that nobody can guess."""
    return f"mem-{secrets.token_urlsafe(24)}"


@dataclass(slots=True)
class _Grant:
    context: CallContext
    revoked: bool = False
    in_flight: dict[str, OpenCall] = field(default_factory=dict)
    settled: list[GatewayCall] = field(default_factory=list)


class TokenBook:
    """All tokens of a gateway. Safe between the gateway's thread and those that grant and revoke."""

    def __init__(self, token_factory: Callable[[], str] = random_token) -> None:
        self._factory = token_factory
        self._changed = threading.Condition()
        self._grants: dict[str, _Grant] = {}

    def grant(self, context: CallContext) -> str:
        """A fresh token. Raises :class:`GatewayError` if the factory repeats itself."""
        token = self._factory()
        with self._changed:
            if token in self._grants:
                raise GatewayError("the token factory gave the same token twice")
            self._grants[token] = _Grant(context)
        return token

    def admit(self, token: str | None, call: OpenCall) -> None:
        """Begin a call. Raises :class:`RefusedError`: 401 for a token that was never granted, 403 for a revoked one."""
        with self._changed:
            grant = self._grants.get(token) if token else None
            if grant is None:
                raise RefusedError(401, "invalid_token", "unknown token" if token else "no bearer token was sent")
            call.context = grant.context
            if grant.revoked:
                call.phase = "after_return"
                raise RefusedError(403, "token_revoked", "the call that this token belonged to has returned")
            grant.in_flight[call.call_id] = call

    def settle(self, token: str | None, call: OpenCall, record: GatewayCall) -> None:
        """End a call with its record."""
        with self._changed:
            grant = self._grants.get(token) if token else None
            if grant is not None and grant.in_flight.pop(call.call_id, None) is not None:
                grant.settled.append(record)
                self._changed.notify_all()

    def revoke(self, token: str, wait_s: float, abort: Callable[[OpenCall], None]) -> tuple[GatewayCall, ...]:
        """End a token; its calls in the order in which they arrived.

        Calls under way get ``wait_s`` to end by themselves and are then given to ``abort``.
        """
        with self._changed:
            grant = self._grants.get(token)
            if grant is None:
                raise GatewayError("a token was revoked that was never granted")
            grant.revoked = True
            if not self._quiet(grant, wait_s):
                for call in list(grant.in_flight.values()):
                    abort(call)
                if not self._quiet(grant, max(wait_s, 1.0)):
                    raise GatewayError(f"{len(grant.in_flight)} calls could not be ended after their RPC had returned")
            calls = tuple(sorted(grant.settled, key=lambda call: (call.started_mono_ns, call.call_id)))
            grant.settled.clear()
            return calls

    def _quiet(self, grant: _Grant, wait_s: float) -> bool:
        deadline = time.monotonic() + wait_s
        while grant.in_flight:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.wait(left)
        return True

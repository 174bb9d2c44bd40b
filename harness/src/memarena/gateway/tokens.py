"""Manages the gateway's tokens: each is valid for one RPC while that runs, and collects the calls made with it.

A backend whose own server is configured only once has one token for a whole cell, which is one backend with one reader
and one seed (SPEC.md MOD-8). It belongs to the pending RPC: the harness makes a single RPC at a time, and reports its
begin and end.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from memarena.gateway.budgets import METERED_ROUTES, Spent
from memarena.gateway.calls import OpenCall, RefusedError
from memarena.gateway.types import Budget, CallContext, GatewayError, Phase
from memarena.log.records import GatewayCall

QUIET_TIMEOUT_S = 120.0
"""How long an RPC of a cell waits for earlier calls to end, such as a server's test of its model."""


def random_token() -> str:
    """Return a token that no caller can guess."""
    return f"mem-{secrets.token_urlsafe(24)}"


@dataclass(slots=True)
class _Grant:
    """A token that was granted, with its budget and its calls."""

    context: CallContext
    revoked: bool = False
    spent: Spent = field(default_factory=Spent)
    names: Mapping[str, str] = field(default_factory=dict)
    """For a cell's token: the aliases of models that its server uses."""
    of_cell: bool = False
    """Whether it is the token of a cell, whose context changes with each RPC."""
    in_flight: dict[str, OpenCall] = field(default_factory=dict)
    finished: list[GatewayCall] = field(default_factory=list)


class TokenBook:
    """All tokens of a gateway. Safe to share between threads."""

    def __init__(
        self, token_factory: Callable[[], str] = random_token, budgets: Mapping[Phase, Budget] | None = None
    ) -> None:
        self._factory = token_factory
        self._budgets = budgets or {}
        self._changed = threading.Condition()
        self._grants: dict[str, _Grant] = {}

    def grant(self, context: CallContext) -> str:
        """Return a new token. Raises :class:`GatewayError` if the factory returns a token twice."""
        token = self._factory()
        with self._changed:
            if token in self._grants:
                raise GatewayError("the token factory gave the same token twice")
            self._grants[token] = _Grant(context)
        return token

    def open_cell(self, token: str | None, cell_id: str | None, names: Mapping[str, str]) -> str:
        """Make ``token`` (None: a new one) valid for a cell; it may be used for several cells, one after the other.

        Until its first RPC, its calls belong to the phase ``probe``, since servers test their models when they start.
        Raises :class:`GatewayError` if it is the token of an RPC.
        """
        context = CallContext("probe", cell_id=cell_id, inferred=True)
        token = token or self._factory()
        with self._changed:
            grant = self._grants.get(token)
            if grant is not None and not grant.of_cell:
                raise GatewayError("the token of a cell is that of an RPC already")
            if grant is None:
                grant = self._grants[token] = _Grant(context, of_cell=True)
            grant.context, grant.names, grant.revoked = context, dict(names), False
        return token

    def begin(self, token: str, context: CallContext) -> None:
        """Begin an RPC of a cell once no call is under way. Raises :class:`GatewayError` if calls do not end."""
        with self._changed:
            grant = self._grants.get(token)
            if grant is None or not grant.of_cell:
                raise GatewayError("an RPC began with a token of no cell")
            if not self._quiet(grant, QUIET_TIMEOUT_S):
                raise GatewayError(
                    f"{len(grant.in_flight)} model calls went on for {QUIET_TIMEOUT_S:g} s before an RPC"
                )
            grant.context, grant.revoked = replace(context, inferred=True), False
            grant.finished.clear()
            grant.spent = Spent()

    def admit(self, token: str | None, call: OpenCall) -> None:
        """Admit a call.

        Raises :class:`RefusedError`: 401 for a token that was never granted, 403 for a revoked one, 429 for one whose
        budget is spent.
        """
        with self._changed:
            grant = self._grants.get(token) if token else None
            if grant is None:
                raise RefusedError(401, "invalid_token", "unknown token" if token else "no bearer token was sent")
            call.context, call.names = grant.context, grant.names
            if grant.revoked:
                call.phase = "after_return"
                raise RefusedError(403, "token_revoked", "the call that this token belonged to has returned")
            budget = self._budgets.get(grant.context.phase)
            if budget is not None and call.route in METERED_ROUTES:
                grant.spent.begin(budget, grant.context.phase)
            grant.in_flight[call.call_id] = call

    def note(self, token: str | None, call: OpenCall, record: GatewayCall) -> None:
        """End a call with its record."""
        with self._changed:
            grant = self._grants.get(token) if token else None
            if grant is not None and grant.in_flight.pop(call.call_id, None) is not None:
                grant.finished.append(record)
                grant.spent.end(call, record)
                self._changed.notify_all()

    def revoke(self, token: str, wait_s: float, abort: Callable[[OpenCall], None]) -> tuple[GatewayCall, ...]:
        """End a token, or the current RPC of a cell's token; return its calls in order of arrival.

        Calls under way get ``wait_s`` seconds to end and are then passed to ``abort``.
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
            calls = tuple(sorted(grant.finished, key=lambda call: (call.started_mono_ns, call.call_id)))
            grant.finished.clear()
            return calls

    def _quiet(self, grant: _Grant, wait_s: float) -> bool:
        """Wait up to ``wait_s`` seconds until no call of the token is under way; return whether that is so."""
        deadline = time.monotonic() + wait_s
        while grant.in_flight:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                return False
            self._changed.wait(seconds_left)
        return True

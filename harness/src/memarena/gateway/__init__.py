"""Runs the metered gateway between backends and models, which times, attributes and records every model call."""

from memarena.gateway.server import MAX_BODY_BYTES, Gateway
from memarena.gateway.types import Budget, CallContext, GatewayError, Upstream

__all__ = ["MAX_BODY_BYTES", "Budget", "CallContext", "Gateway", "GatewayError", "Upstream"]

"""Defines the limits of the contract in bytes (SPEC.md, limits). A size at a limit is accepted, a larger is refused.

The harness has its own copy (``memarena.conformance.contract_limits``), as backends must not import the harness.
"""

from __future__ import annotations

FRAME_BYTES = 1024 * 1024
"""Limit of a serialised frame of Ingest."""

RESPONSE_BYTES = 4 * 1024 * 1024
"""Limit of a serialised response; every gRPC library accepts this much by default."""

RESPONSE_ITEMS = 65_536
"""Limit of the number of items in a response; the only one that is not in bytes."""

TURN_TEXT_BYTES = 256 * 1024
"""Limit of the text of a turn or an event, in UTF-8."""

QUERY_TEXT_BYTES = 64 * 1024
"""Limit of the text of a question, in UTF-8."""

ID_BYTES = 128
"""Limit of any id, in UTF-8."""

REQUEST_RECEIVE_BYTES = 8 * 1024 * 1024
"""Limit of the transport, above those of the contract, so that a larger request gets our error, not the transport's."""

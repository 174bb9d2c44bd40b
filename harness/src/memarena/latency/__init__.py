"""Measures the latency of an edge node: runs a study, fits its times, and computes costs and growth.

``selection`` chooses the queries and ``study`` runs the phases; ``samples`` reads times from logs; ``fit`` and
``composition`` compute without files; ``pipeline`` assembles a study's results. ``growth`` measures Search, memory and
disk by the length of the history.
"""

from memarena.latency.errors import LatencyError

__all__ = ["LatencyError"]

"""The latency study of an edge node (design 5): which queries, which runs, fits, composition, cost of ingest, growth.

``selection`` chooses the queries and ``study`` runs the phases; ``samples`` reads times from logs, ``fit`` and
``composition`` are pure, ``pipeline`` puts a study's results together; ``growth`` measures by length of history.
"""

from memarena.latency.errors import LatencyError

__all__ = ["LatencyError"]

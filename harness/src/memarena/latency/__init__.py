"""The latency study of an edge node (design 5): which queries, which runs, fits, composition, cost of ingest, growth.

``selection`` chooses the queries and ``protocol`` runs the phases; ``samples`` reads times from logs, ``fitting`` and
``composing`` are pure, ``studying`` puts a study's results together; ``growth`` measures a memory by length of history.
"""

from memarena.latency.errors import LatencyError

__all__ = ["LatencyError"]

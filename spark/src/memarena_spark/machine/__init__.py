"""The machine that this runs on, as a :class:`~memarena_spark.node.Node`."""

from memarena_spark.machine.this import ThisMachine

__all__ = ["ThisMachine"]

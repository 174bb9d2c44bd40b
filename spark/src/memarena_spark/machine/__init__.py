"""Implements :class:`~memarena_spark.node.Node` for the machine on which this program runs."""

from memarena_spark.machine.this import ThisMachine

__all__ = ["ThisMachine"]

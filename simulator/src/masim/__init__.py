"""MaSim: one coherent social world, its conversations, and the questions whose answers it knows."""

__version__ = "0.1.0"

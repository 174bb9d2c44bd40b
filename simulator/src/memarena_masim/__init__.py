"""MaSim: generates a social world, its conversations, and questions with exact answers."""

__version__ = "0.2.0"

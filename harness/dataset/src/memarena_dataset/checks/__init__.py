"""Defines the checks of ``memarena dataset validate``: one function per class of fault, which yields findings."""

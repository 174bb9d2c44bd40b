"""Exports a run as flat tables for notebooks and other programs; for columns see :mod:`memarena.tables.columns`."""

"""Exports a run as flat tables for notebooks and other programs; :mod:`memarena.tables.columns` describes the columns."""

"""A run as flat tables, for notebooks and other programs. What a column means: :mod:`memarena.tables.columns`."""

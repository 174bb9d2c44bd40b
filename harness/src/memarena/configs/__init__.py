"""Named configurations: the paper's ablations and its main grid as files, and how such a file is read.

A file says what it is for and, below ``[run]``, any field of a run's configuration. Users may write their own.
"""

from memarena.configs.reading import Configuration, named_configurations, read_file, read_named

__all__ = ["Configuration", "named_configurations", "read_file", "read_named"]

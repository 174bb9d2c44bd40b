"""What words say: normal forms, numbers, dates, names, hedges and refusals, read from text without any model.

A leaf below ``judge`` and ``scoring``, which must not import each other and yet have to read answers alike. It knows
the typed values of ``memarena.dataset`` and nothing else of ours. Everything here is pure and deterministic; what is a
matter of vocabulary stands in the versioned files of ``lexicons/``.
"""

from memarena.text.lexicon import data_files

__all__ = ["data_files"]

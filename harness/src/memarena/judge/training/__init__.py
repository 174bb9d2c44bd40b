"""Phrasings from which the weights of wording are learned; :mod:`memarena.judge.learning` reads them."""

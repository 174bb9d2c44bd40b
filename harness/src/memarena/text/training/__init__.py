"""Texts from which the weights of a stance are learned, as data files; :mod:`memarena.text.learning` reads them."""

"""Serves web pages on which annotators label a sample of answers blind (``memarena annotate``)."""

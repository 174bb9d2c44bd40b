"""Serves or exports web pages of runs, their figures and answers (``memarena view``)."""

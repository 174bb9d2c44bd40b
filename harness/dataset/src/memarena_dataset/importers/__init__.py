"""Imports published data sets into our layout; everything that is skipped or changed is reported with the reason.

A module for each data set states in its docstring how the source becomes egos (persons whose memory is asked),
sessions and questions. The others are shared: rows, times, cleaning of texts, typed answers, the account of changes.
"""

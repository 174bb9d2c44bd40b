"""Defines the checks of ``memarena dataset validate``: one function per class of fault, which yields findings.

A question that the data set itself makes unanswerable counts against every backend. An ego's projection, which many
checks need, is all that its backend is sent: the sessions in which the ego takes part, the events that it could see.
"""

"""Watches the readers of a run: which processes answer, and to which addresses these are connected.

A certified reader must be a process of the node: if a server passed prompts on to another machine, the times
would be those of that machine, and its energy would not be measured.
"""

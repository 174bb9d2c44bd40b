"""Runs sweeps: many runs of a single cell, on one machine or several, sealed one by one and listed in a manifest.

A cell is one memory with one reader and one seed over one world. Sealing records the hashes of its files once it has
ended, so that a sweep can stop at any time and continue with the cells that are not sealed.
"""

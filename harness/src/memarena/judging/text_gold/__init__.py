"""Judges answers against golds that are text: does an answer, at any length, say what the gold says?"""

"""Runs a blind reading: sessions of a world and of LoCoMo, shuffled, marked for sense by readers who know neither."""

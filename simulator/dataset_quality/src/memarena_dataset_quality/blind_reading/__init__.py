"""A blind reading: sessions of a world beside sessions of LoCoMo, marked for sense by readers who know neither."""

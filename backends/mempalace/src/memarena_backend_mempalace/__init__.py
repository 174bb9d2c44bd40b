"""MemPalace memory backend: what was said, word for word, in a palace per namespace."""

"""MemPalace memory backend: turns and events word for word, in a palace (the library's store) per namespace."""

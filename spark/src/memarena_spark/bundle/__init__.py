"""What is published: a folder of facts, of figures that follow from them, and of hashes over both, signed as one."""

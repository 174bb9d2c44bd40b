"""Data sets of others, brought into our layout. Nothing is lost in silence: what is skipped is named with a reason."""

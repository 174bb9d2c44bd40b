"""Everything that validate looks at: one small function per class of fault."""

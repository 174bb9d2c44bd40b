"""``python -m memarena_masim``."""

from memarena_masim.cli import main

if __name__ == "__main__":
    main()

"""``python -m masim``."""

from masim.cli import main

if __name__ == "__main__":
    main()

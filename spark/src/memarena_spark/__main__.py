"""``python -m memarena_spark`` is the command ``memarena-spark``."""

from memarena_spark.cli.main import main

if __name__ == "__main__":
    main()

"""Runs ``python -m memarena_spark``, which is the command ``memarena-spark``."""

from memarena_spark.cli.main import main

if __name__ == "__main__":
    main()

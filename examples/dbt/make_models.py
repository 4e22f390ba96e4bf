"""Write the model of this package: the numbers of segments as SQL over the files of a store.

    python examples/dbt/make_models.py --by site --resolution 1200 --dialect duckdb

Run it again with the columns, the resolution and the dialect of your own store; ``--table`` names another table of
states than the files that DuckDB reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from calibrary.scale import segment_sql

MODEL = Path(__file__).parent / "models" / "segment_numbers.sql"
FILES = "read_parquet('{{ var(\"store\") }}/states/*/*.parquet', hive_partitioning = true)"
HEAD = """{{ config(materialized='table') }}
-- made by make_models.py: rows, ECE, Brier score, O/E and bias of each segment
"""


def model(by: list[str], resolution: int, dialect: str, table: str = FILES) -> str:
    """The text of the model."""
    return f"{HEAD}{segment_sql(table, by=['day', *by], resolution=resolution, dialect=dialect)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", action="append", help="columns that the store keeps apart")
    parser.add_argument("--resolution", type=int, default=1200)
    parser.add_argument("--dialect", default="duckdb")
    parser.add_argument("--table", default=FILES)
    asked = parser.parse_args()
    MODEL.write_text(model(asked.by or ["site"], asked.resolution, asked.dialect, asked.table), encoding="utf-8")


if __name__ == "__main__":
    main()

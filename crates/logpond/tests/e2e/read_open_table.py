"""Reads an open table with DuckDB and with delta-rs, again and again.

usage: read_open_table.py TABLE SQL

For each line of its input it prints, as JSON: what each engine counts, with the number of different
values of the field `n`, and what the first column of the first row of SQL is in DuckDB; null while there is
no table.
"""
import json
import sys

import deltalake
import duckdb
from duckdb_extensions import import_extension

table, sql = sys.argv[1:]
import_extension("delta")
connection = duckdb.connect()
connection.execute("LOAD delta")
COUNTS = "SELECT count(*) AS rows, count(DISTINCT n) AS numbers FROM "


def with_duckdb():
    return connection.execute(COUNTS + "delta_scan('%s')" % table).fetchone()


def with_delta_rs():
    builder = deltalake.QueryBuilder().register("logs", deltalake.DeltaTable(table))
    answer = builder.execute(COUNTS + "logs").read_all()
    return [answer[name][0].as_py() for name in ("rows", "numbers")]


for _ in sys.stdin:
    answers = None
    if deltalake.DeltaTable.is_deltatable(table):
        answers = {
            "duckdb": with_duckdb(),
            "delta-rs": with_delta_rs(),
            "recipe": connection.execute(sql).fetchone()[0],
        }
    print(json.dumps(answers), flush=True)

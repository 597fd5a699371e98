"""Reads segment files with DuckDB and prints, as JSON, what the test compares.

usage: read_with_duckdb.py SQL FILE...   where SQL selects from the table `logs`
"""
import json
import sys

import duckdb

sql, files = sys.argv[1], sys.argv[2:]
connection = duckdb.connect()
connection.execute(
    "CREATE VIEW logs AS SELECT * FROM read_parquet(%s, union_by_name = true)"
    % json.dumps(files).replace('"', "'")
)
print(json.dumps(connection.execute(sql).fetchall(), default=str))

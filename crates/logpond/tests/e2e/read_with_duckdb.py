"""Reads segment files with DuckDB and prints, as JSON, what the tests compare.

usage: read_with_duckdb.py SQL FILE...

SQL selects from the table `logs` or `segments`, which are the same. If it is a JSON list of
statements, a list of their answers is printed, and `logs` is theirs to make.
"""
import json
import sys

import duckdb

sql, files = sys.argv[1], sys.argv[2:]
connection = duckdb.connect()
connection.execute(
    "CREATE VIEW segments AS SELECT * FROM read_parquet(%s, union_by_name = true)"
    % json.dumps(files).replace('"', "'")
)
if sql.startswith("["):
    answers = [connection.execute(one).fetchall() for one in json.loads(sql)]
else:
    connection.execute("CREATE VIEW logs AS SELECT * FROM segments")
    answers = connection.execute(sql).fetchall()
print(json.dumps(answers, default=str))

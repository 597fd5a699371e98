"""Asks a server by clients of Postgres in Python, and checks the answers."""

import datetime
import sys

import psycopg
import sqlalchemy

host, port = sys.argv[1].rsplit(":", 1)
RECORDS = int(sys.argv[2])
UTC = datetime.timezone.utc


def connect(**more):
    return psycopg.connect(host=host, port=port, user="ann", dbname="logpond", **more)


def fails(connection, statement, code, parameters=None):
    try:
        connection.execute(statement, parameters)
    except psycopg.Error as error:
        assert error.sqlstate == code, (statement, error.sqlstate, str(error))
        return error
    raise AssertionError(f"{statement} has an answer")


def forms(connection):
    """Values of all types, in text and in binary."""
    statement = (
        "SELECT time, message, status, took, ok, NULL AS nothing, CAST(status AS DECIMAL(20, 2)) / 8 AS exact, "
        "CAST(time AS DATE) AS day, time - time AS span, array_agg(status) OVER (PARTITION BY message) AS list "
        "FROM logs WHERE message = %s ORDER BY time LIMIT 1"
    )
    answers = []
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        answers.append(cursor.execute(statement, ["request 7 of 7"]).fetchone())
    text, binary = answers
    assert text == binary, answers
    assert text[0] == datetime.datetime(2026, 3, 2, 0, 0, 7, tzinfo=UTC), text
    assert text[1:6] == ("request 7 of 7", 500, 0.875, False, None), text
    assert float(text[6]) == 62.5 and text[7] == datetime.date(2026, 3, 2), text
    assert text[8] == datetime.timedelta(0) and text[9] == [500], text


def parameters(connection):
    begin = datetime.datetime(2026, 3, 2, 0, 1, tzinfo=UTC)
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        for statement, values, expected in [
            ("SELECT count(*) FROM logs WHERE status = %s", [404], RECORDS // 4),
            ("SELECT count(*) FROM logs WHERE status = %b", [404], RECORDS // 4),
            ("SELECT count(*) FROM logs WHERE time < %s", [begin], 60),
            ("SELECT count(*) FROM logs WHERE time < %b", [begin], 60),
            ("SELECT count(*) FROM logs WHERE host = ANY(%s) AND time < %s", [["web-1", "web-2"], begin], 18),
            ("SELECT count(*) FROM logs WHERE ok = %s", [True], RECORDS // 2),
            ("SELECT count(*) FROM logs WHERE took >= %s", [7.5], RECORDS - 60),
            ("SELECT %s::text", ["it's; -- $1"], "it's; -- $1"),
        ]:
            found = cursor.execute(statement, values).fetchone()[0]
            assert found == expected, (statement, found, expected)
    prepared = [connection.execute("SELECT %s::int + 1", [n], prepare=True).fetchone()[0] for n in range(20)]
    assert prepared == list(range(1, 21))


def cursors(connection):
    """Rows in parts, on the server's side."""
    for binary in (False, True):
        with connection.transaction():
            cursor = connection.cursor(name="many", binary=binary)
            cursor.itersize = 1000
            cursor.execute("SELECT time, status FROM logs ORDER BY time")
            rows = list(cursor)
            assert len(rows) == RECORDS
            assert rows[0] == (datetime.datetime(2026, 3, 2, tzinfo=UTC), 200), rows[0]
    streamed = connection.cursor().stream("SELECT time FROM logs")
    assert sum(1 for _ in streamed) == RECORDS


def errors(connection):
    for statement, code in [
        ("INSERT INTO logs VALUES (1)", "25006"),
        ("CREATE TABLE x (a int)", "25006"),
        ("SELEC 1", "42601"),
        ("SELECT 1 +", "42601"),
        ("SELECT * FROM lags", "42P01"),
        ("SELECT statsu FROM logs", "42703"),
        ("SELECT foo(1)", "42883"),
        ("COPY logs TO STDOUT", "0A000"),
        ("SHOW nonsense", "42704"),
        ("SET logpond.incomplete = 'maybe'", "22023"),
        ("SET statement_timeout = 'soon'", "22023"),
    ]:
        fails(connection, statement, code)
    slow = "SELECT count(*) FROM logs a, logs b, logs c WHERE a.took + b.took + c.took = 1.25"
    connection.execute("SET statement_timeout = '200ms'")
    fails(connection, slow, "57014")
    connection.execute("RESET statement_timeout")
    # A transaction that failed says so until its end.
    with psycopg.Connection.connect(host=host, port=port, user="ann") as other:
        fails(other, "SELECT nonsense FROM logs", "42703")
        fails(other, "SELECT 1", "25P02")
        other.rollback()
        assert other.execute("SELECT 1").fetchone() == (1,)


def grafana(connection):
    """Expressions that the macros of Grafana become."""
    begin, end = "'2026-03-02T00:00:00Z'", "'2026-03-02T00:09:59.999Z'"
    for statement, rows in [
        (f"SELECT count(*) FROM logs WHERE time BETWEEN {begin} AND {end}", 1),
        (
            "SELECT floor(extract(epoch from time)/60)*60 AS \"time\", count(*) AS \"n\" FROM logs "
            f"WHERE time BETWEEN {begin} AND {end} GROUP BY 1 ORDER BY 1",
            10,
        ),
        (
            f"SELECT date_trunc('minute', time) AS \"time\", host, count(*) FROM logs "
            f"WHERE time BETWEEN {begin} AND {end} GROUP BY 1, 2 ORDER BY 1",
            70,
        ),
        (
            "SELECT extract(epoch from time) AS \"time\", took FROM logs WHERE "
            "extract(epoch from time) >= 1772409600 AND extract(epoch from time) <= 1772409659",
            60,
        ),
    ]:
        found = connection.execute(statement).fetchall()
        assert len(found) == rows, (statement, len(found))


# Statements and what PostgreSQL 15 answers to them over the same rows.
DIALECT = [
    ("SELECT to_char(time, 'YYYY-MM-DD HH24:MI:SS.MS') FROM logs ORDER BY time LIMIT 1", "2026-03-02 00:00:00.000"),
    ("SELECT to_char(time, 'Dy, DD Mon YYYY HH12:MI AM') FROM logs ORDER BY time LIMIT 1", "Mon, 02 Mar 2026 12:00 AM"),
    ("SELECT to_char(time, 'IYYY-IW ID DDD \"at\" FMDD') FROM logs ORDER BY time LIMIT 1", "2026-10 1 061 at 2"),
    ("SELECT time AT TIME ZONE 'Europe/Berlin' FROM logs ORDER BY time LIMIT 1", datetime.datetime(2026, 3, 2, 1, 0)),
    (
        "SELECT TIMESTAMP '2026-03-02 10:00:00' AT TIME ZONE 'Europe/Berlin'",
        datetime.datetime(2026, 3, 2, 9, 0, tzinfo=UTC),
    ),
    (
        "SELECT date_trunc('day', time, 'Europe/Berlin') FROM logs ORDER BY time LIMIT 1",
        datetime.datetime(2026, 3, 1, 23, 0, tzinfo=UTC),
    ),
    (
        "SELECT date_trunc('day', time AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'Asia/Tokyo' FROM logs ORDER BY time LIMIT 1",
        datetime.datetime(2026, 3, 1, 15, 0, tzinfo=UTC),
    ),
    ("SELECT to_timestamp('02 Mar 2026 10:00:00', 'DD Mon YYYY HH24:MI:SS')", datetime.datetime(2026, 3, 2, 10, tzinfo=UTC)),
    ("SELECT time::text FROM logs ORDER BY time LIMIT 1", "2026-03-02 00:00:00+00"),
    ("SELECT '{a,\"b c\"}'::text[]", ["a", "b c"]),
    ("SELECT '{1,2}'::int[]", [1, 2]),
    ("SELECT (took + 0.5)::int FROM logs WHERE took = 2.0", 2),
    ("SELECT (took + 0.6)::int FROM logs WHERE took = 2.0", 3),
    ("SELECT 'web-1'::varchar(3)", "web"),
    ("SELECT substring(message from 'of ([0-9]+)') FROM logs ORDER BY time LIMIT 1", "0"),
    ("SELECT array_lower(ARRAY[7, 8], 1) + array_upper(ARRAY[7, 8], 1)", 3),
    ("SELECT array_lower(ARRAY[]::int[], 1)", None),
    ("SELECT format('%s-%I-%L', 'a', 'B c', 'd''e')", "a-\"B c\"-'d''e'"),
    ("SELECT every(ok) FROM logs", False),
    ("SELECT sum(g) FROM generate_series(1, 3) AS g", 6),
    ("SELECT status FROM logs ORDER BY time OFFSET 2 ROWS FETCH NEXT 1 ROWS ONLY", 404),
    ("SELECT row_number() OVER (ORDER BY time) FROM logs ORDER BY time LIMIT 1", 1),
]


def dialect(connection):
    for statement, expected in DIALECT:
        found = connection.execute(statement).fetchone()[0]
        assert found == expected, (statement, found, expected)
    fails(connection, "SELECT to_char(time, 'J') FROM logs", "42000")
    for statement, names in [
        ("SELECT status, status, count(*), max(took), max(status) FROM logs GROUP BY status", "status status count max max"),
        ("SELECT l.status, l.status FROM logs l ORDER BY status LIMIT 1", "status status"),
        ("SELECT extract(hour from time), trim(host), 1 + 1 FROM logs LIMIT 1", "extract btrim ?column?"),
    ]:
        cursor = connection.execute(statement)
        found = [column.name for column in cursor.description]
        assert found == names.split(), (statement, found)


# Conditions and columns by which tools look for tables: Grafana, Metabase, DBeaver, Power BI.
IN_SEARCH_PATH = (
    "quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i]) END "
    "FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), "
    "array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, "
    "string_to_array(current_setting('search_path'), ',') s)"
)

TOOLS = [
    "SELECT current_setting('server_version_num')::int / 100 AS version",
    f"SELECT CASE WHEN {IN_SEARCH_PATH} THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || "
    f"quote_ident(table_name) END AS \"table\" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN "
    f"('information_schema', 'pg_catalog') ORDER BY CASE WHEN {IN_SEARCH_PATH} THEN 0 ELSE 1 END, 1",
    "SELECT quote_ident(column_name) AS \"column\", data_type AS \"type\" FROM information_schema.columns WHERE "
    "CASE WHEN array_length(parse_ident('logs'), 1) = 2 THEN quote_ident(table_schema) = (parse_ident('logs'))[1] "
    f"ELSE quote_ident(table_name) = 'logs' AND {IN_SEARCH_PATH} END",
    "SELECT c.relname, d.description FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid "
    "LEFT JOIN pg_catalog.pg_description d ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass "
    "WHERE n.nspname !~ '^pg_' AND c.relkind IN ('r', 'v')",
    "SELECT FORMAT('%s', c.udt_name), col_description(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), "
    "CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) FROM information_schema.columns c "
    "WHERE c.table_name = 'logs'",
    "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn",
    "SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid = n.oid AND d.objsubid = 0 ORDER BY nspname",
    "SELECT c.oid, c.*, d.description, pg_get_partkeydef(c.oid) AS key FROM pg_catalog.pg_class c LEFT OUTER JOIN "
    "pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 "
    "WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'public')",
    "SELECT character_set_name FROM INFORMATION_SCHEMA.character_sets",
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.tables ORDER BY TABLE_SCHEMA, TABLE_NAME",
]


def tools(connection):
    for statement in TOOLS:
        assert connection.execute(statement).fetchall(), statement


def reflection():
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://ann@{host}:{port}/logpond")
    inspector = sqlalchemy.inspect(engine)
    assert "logs" in inspector.get_table_names(), inspector.get_table_names()
    assert "public" in inspector.get_schema_names()
    columns = {column["name"]: column for column in inspector.get_columns("logs")}
    assert str(columns["time"]["type"]) == "TIMESTAMP", columns["time"]
    assert columns["time"]["type"].timezone
    assert str(columns["status"]["type"]) == "BIGINT"
    assert str(columns["took"]["type"]) == "DOUBLE PRECISION"
    assert columns["time"]["comment"] == "The event time"
    assert inspector.get_pk_constraint("logs")["constrained_columns"] == []
    assert inspector.get_foreign_keys("logs") == [] and inspector.get_indexes("logs") == []
    assert inspector.get_table_comment("logs")["text"]
    table = sqlalchemy.Table("logs", sqlalchemy.MetaData(), autoload_with=engine)
    query = sqlalchemy.select(sqlalchemy.func.count()).where(table.c.status == 404)
    with engine.connect() as connection:
        assert connection.execute(query).scalar() == RECORDS // 4
    engine.dispose()


with connect(autocommit=True) as connection:
    for check in (forms, parameters, cursors, errors, grafana, dialect, tools):
        check(connection)
reflection()
print("all is well")

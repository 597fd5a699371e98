"""Reads records with the client of Elasticsearch, as a program would use it.

usage: read_with_elasticsearch.py URL
"""
import sys

from elasticsearch import BadRequestError, Elasticsearch, helpers
from elasticsearch.dsl import A, Search

COUNT = 250

client = Elasticsearch(sys.argv[1])
documents = (
    {
        "_op_type": "create",
        "_index": "logs-app",
        "@timestamp": "2026-03-02T00:%02d:%02d.%03dZ" % (number // 60, number % 60, number),
        "message": "request %d took %d ms" % (number, number * 2),
        "number": number,
        "host": {"name": "web-%d" % (number % 3)},
        "level": "error" if number % 50 == 0 else "info",
        "tags": ["all", "shard \"%d\"" % (number % 3), number],
    }
    for number in range(COUNT)
)
stored, errors = helpers.bulk(client, documents)
assert (stored, errors) == (COUNT, []), (stored, errors)

# A search, its hits and its total.
query = {"bool": {"filter": [{"term": {"level": "error"}}, {"range": {"number": {"gte": 50}}}]}}
found = client.search(index="logs-*", query=query, sort=[{"@timestamp": "asc"}], size=2)
assert found["hits"]["total"] == {"value": 4, "relation": "eq"}, found
assert [hit["_source"]["number"] for hit in found["hits"]["hits"]] == [50, 100], found
identity = found["hits"]["hits"][0]["_id"]
assert client.get(index="logs-app", id=identity)["_source"]["number"] == 50
assert not client.exists(index="logs-app", id="none")
assert client.count(index="*", query={"match": {"message": "took"}})["count"] == COUNT
assert client.count(index="logs-app", q="number:[10 TO 19] AND host.name:web-1")["count"] == 4

# All records by a scroll.
numbers = [hit["_source"]["number"] for hit in helpers.scan(client, index="logs-app", size=60)]
assert sorted(numbers) == list(range(COUNT)), len(numbers)
kept = list(helpers.scan(client, index="logs-app", query={"query": query}, preserve_order=True))
assert len(kept) == 4, kept

# All records by a point in time and search_after.
pit = client.open_point_in_time(index="logs-app", keep_alive="1m")["id"]
numbers, after = [], None
while True:
    extra = {"search_after": after} if after else {}
    page = client.search(pit={"id": pit, "keep_alive": "1m"}, sort=[{"@timestamp": "desc"}], size=70, **extra)
    if not page["hits"]["hits"]:
        break
    numbers += [hit["_source"]["number"] for hit in page["hits"]["hits"]]
    after = page["hits"]["hits"][-1]["sort"]
assert numbers == list(reversed(range(COUNT))), numbers
assert client.close_point_in_time(id=pit)["succeeded"]

# Hits in the order of fields, in pages and by a scroll.
order = [{"host.name": "desc"}, {"number": {"order": "asc"}}]
expected = sorted(range(COUNT), key=lambda number: (-(number % 3), number))
page = client.search(index="logs-app", sort=order, from_=80, size=20)
assert [hit["_source"]["number"] for hit in page["hits"]["hits"]] == expected[80:100], page
assert page["hits"]["hits"][0]["sort"] == ["web-%d" % (expected[80] % 3), expected[80]], page
assert page["hits"]["total"]["value"] == COUNT, page
after = page["hits"]["hits"][-1]["sort"]
page = client.search(index="logs-app", sort=order, search_after=after, size=700)
assert [hit["_source"]["number"] for hit in page["hits"]["hits"]] == expected[100:], page
body = {"sort": [{"host.name": "desc"}, "number"]}
numbers = [hit["_source"]["number"] for hit in helpers.scan(client, index="logs-app", query=body, size=60, preserve_order=True)]
assert numbers == expected, numbers
both = client.search(index="logs-app", sort=[{"level": "asc"}, {"@timestamp": "desc"}], size=6)["hits"]["hits"]
assert [hit["_source"]["number"] for hit in both] == [200, 150, 100, 50, 0, 249], both

# Fields of the records of a range.
fields = client.field_caps(index="logs-*", fields="*", index_filter={"range": {"@timestamp": {"gte": "2036-01-01"}}})
assert "number" not in fields["fields"], fields
fields = client.field_caps(index="logs-*", fields="number", index_filter={"range": {"@timestamp": {"gte": "2026-01-01"}}})
assert fields["fields"]["number"]["long"]["searchable"], fields

# A field of dates is compared as such.
client.index(index="notes", document={"until": "2026-03-02T01:00:00+01:00", "note": "x"}, refresh=True)
for bounds, count in (({"gte": "2026-03-02T00:00:00Z"}, 1), ({"gt": "2026-03-02"}, 0), ({"from": "2020-01-01||/y", "to": "now"}, 1)):
    assert client.count(index="notes", query={"range": {"until": bounds}})["count"] == count, bounds

# What the higher library builds.
search = Search(using=client, index="logs-*").query("match_phrase", message="took 20 ms").filter("term", level="info")
assert [hit.number for hit in search.execute()] == [10]
search = Search(using=client, index="logs-*")[:0]
hosts = A("terms", field="host.name", order={"_key": "asc"})
hosts.metric("mean", "avg", field="number").metric("worst", "percentiles", field="number", percents=[100])
search.aggs.bucket("hosts", hosts)
search.aggs.bucket("time", "date_histogram", field="@timestamp", calendar_interval="minute")
aggregated = search.execute().aggregations
assert [(bucket.key, bucket.doc_count) for bucket in aggregated.hosts.buckets] == [
    ("web-0", 84),
    ("web-1", 83),
    ("web-2", 83),
]
assert aggregated.hosts.buckets[0].mean.value == 124.5
assert aggregated.hosts.buckets[0].worst["values"]["100.0"] == 249.0
assert [bucket.doc_count for bucket in aggregated.time.buckets] == [60, 60, 60, 60, 10]

# Pipelines, and all combinations of values in pages.
search = Search(using=client, index="logs-*")[:0]
minutes = search.aggs.bucket("minutes", "date_histogram", field="@timestamp", fixed_interval="1m")
minutes.metric("sum", "sum", field="number")
minutes.pipeline("so_far", "cumulative_sum", buckets_path="_count")
minutes.pipeline("change", "derivative", buckets_path="sum")
minutes.pipeline("mean", "bucket_script", buckets_path={"s": "sum", "n": "_count"}, script="params.s / params.n")
minutes.pipeline("three", "bucket_sort", sort=[{"so_far": {"order": "desc"}}], size=3)
search.aggs.pipeline("busiest", "max_bucket", buckets_path="minutes>_count")
aggregated = search.execute().aggregations
assert [bucket.so_far.value for bucket in aggregated.minutes.buckets] == [250, 240, 180], aggregated
assert [bucket.mean.value for bucket in aggregated.minutes.buckets] == [244.5, 209.5, 149.5], aggregated
assert aggregated.minutes.buckets[1].change.value == 3600, aggregated
assert aggregated.busiest.value == 60 and len(aggregated.busiest["keys"]) == 2, aggregated
sources = [{"level": A("terms", field="level")}, {"host": A("terms", field="host.name", order="desc")}]
pages, after = [], {}
for _ in range(10):
    search = Search(using=client, index="logs-*")[:0]
    search.aggs.bucket("pairs", "composite", sources=sources, size=4, **after)
    pairs = search.execute().aggregations.pairs
    if not pairs.buckets:
        break
    pages.append([(bucket.key.level, bucket.key.host, bucket.doc_count) for bucket in pairs.buckets])
    after = {"after": pairs.after_key}
errors = [sum(number % 3 == host for number in range(0, COUNT, 50)) for host in (2, 1, 0)]
infos = [(83, 83, 84)[at] - errors[at] for at in range(3)]
rows = [("error", "web-%d" % (2 - at), errors[at]) for at in range(3)]
rows += [("info", "web-%d" % (2 - at), infos[at]) for at in range(3)]
assert pages == [rows[:4], rows[4:]], pages

# Each element of a list is a value.
counts = {
    81: {"range": {"number": {"gte": 169}}},
    83: {"term": {"tags": 'shard "1"'}},
    166: {"terms": {"tags": ['shard "1"', 'shard "2"', "none"]}},
    1: {"term": {"tags": 7}},
    0: {"prefix": {"tags": "hard"}},
    250: {"prefix": {"tags": "shard"}},
    84: {"wildcard": {"tags": "sh*0?"}},
}
for count, query in counts.items():
    assert client.count(index="logs-app", query=query)["count"] == count, query
assert client.count(index="logs-app", q='tags:"shard \\"1\\"" AND tags:all')["count"] == 83
search = Search(using=client, index="logs-*")[:0]
search.aggs.bucket("tags", "terms", field="tags", size=3)
tags = search.execute().aggregations.tags.buckets
assert [(bucket.key, bucket.doc_count) for bucket in tags] == [
    ("all", 250),
    ('shard "0"', 84),
    ('shard "1"', 83),
], tags

# Several searches, one of which fails.
searches = [{"index": "logs-app"}, {"query": {"ids": {"values": [identity]}}}, {}, {"query": {"nested": {}}}]
first, second = client.msearch(searches=searches)["responses"]
assert first["hits"]["total"]["value"] == 1 and second["status"] == 400, (first, second)

mapping = client.indices.get_mapping(index="logs-app")
assert mapping["logs-app"]["mappings"]["properties"]["number"]["type"] == "long", mapping
capabilities = client.field_caps(index="logs-app", fields="host.*")
assert capabilities["fields"]["host.name"]["keyword"]["aggregatable"], capabilities
indices = client.cat.indices(index="logs-*", format="json")
assert [(index["index"], index["docs.count"]) for index in indices] == [("logs-app", str(COUNT))], indices
assert client.indices.resolve_index(name="logs-*")["indices"][0]["name"] == "logs-app"
try:
    client.search(query={"function_score": {}})
    raise AssertionError("it is not supported")
except BadRequestError as error:
    assert "there are no scores" in str(error), error

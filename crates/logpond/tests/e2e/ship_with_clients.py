"""Ships records with the clients of other systems, as a program would use them.

usage: ship_with_clients.py elasticsearch|loki URL COUNT
"""
import logging
import sys

kind, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def elasticsearch():
    from elasticsearch import Elasticsearch, helpers

    client = Elasticsearch(url)
    assert client.ping()
    info = client.info()
    assert info["tagline"] == "You Know, for Search", info
    assert client.cluster.health()["status"] == "green"
    template = {"index_patterns": ["logs-*"], "template": {"settings": {}}}
    client.indices.put_index_template(name="logs", body=template)
    actions = (
        {
            "_op_type": "create",
            "_index": "logs-app",
            "@timestamp": "2026-03-02T00:%02d:%02dZ" % (number // 60 % 60, number % 60),
            "message": "shipped %d" % number,
            "number": number,
            "host": {"name": "web-%d" % (number % 3)},
        }
        for number in range(count)
    )
    stored, errors = helpers.bulk(client, actions, chunk_size=500)
    assert (stored, errors) == (count, []), (stored, errors)
    answer = client.index(index="logs-app", document={"message": "a single one"})
    assert answer["result"] == "created", answer
    bad = [{"_op_type": "delete", "_index": "logs-app", "_id": "1"}]
    _, errors = helpers.bulk(client, bad, raise_on_error=False)
    assert errors[0]["delete"]["status"] == 400, errors


def loki():
    import logging_loki

    def failed(self, record):
        raise

    logging_loki.LokiHandler.handleError = failed
    push = url + "/loki/api/v1/push"
    handler = logging_loki.LokiHandler(push, tags={"application": "shop"}, version="1")
    logger = logging.getLogger("shipping")
    logger.addHandler(handler)
    for number in range(count):
        logger.warning("shipped %d", number, extra={"tags": {"number": str(number)}})


{"elasticsearch": elasticsearch, "loki": loki}[kind]()

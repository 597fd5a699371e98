"""Ships records with the clients of other systems, as a program would use them.

usage: ship_with_clients.py elasticsearch|loki|gelf-udp|gelf-tcp|gelf-http|fluent URL|ADDRESS COUNT
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


def gelf(make, **options):
    import pygelf

    def failed(self, record):
        raise

    host, port = url.rsplit("/", 1)[-1].rsplit(":", 1)
    handler = getattr(pygelf, make)(host, int(port), include_extra_fields=True, _app="shop", **options)
    handler.handleError = failed.__get__(handler)
    logger = logging.getLogger("shipping")
    logger.propagate = False
    logger.addHandler(handler)
    for number in range(count):
        logger.warning("shipped %d", number, extra={"number": number})
    # Longer than a datagram, compressed or not.
    noise = "".join(str(hash((n, "noise"))) for n in range(2000))
    logger.warning("a long one " + noise)
    try:
        raise ValueError("something odd")
    except ValueError:
        logger.exception("it failed")
    handler.close()


def fluent():
    from fluent import event, handler, sender

    host, port = url.rsplit(":", 1)
    logger = logging.getLogger("shipping")
    logger.propagate = False
    forward = handler.FluentHandler("shop", host=host, port=int(port), nanosecond_precision=True)
    forward.setFormatter(handler.FluentRecordFormatter({"level": "%(levelname)s"}))
    logger.addHandler(forward)
    for number in range(count):
        logger.warning({"message": "shipped %d" % number, "number": number, "of": {"n": [number]}})
    forward.close()
    sender.setup("shop", host=host, port=int(port))
    event.Event("orders", {"order": 7, "paid": True})
    sender.close()


clients = {
    "elasticsearch": elasticsearch,
    "loki": loki,
    "fluent": fluent,
    "gelf-udp": lambda: gelf("GelfUdpHandler", compress=count % 2 == 0, chunk_size=1300),
    "gelf-tcp": lambda: gelf("GelfTcpHandler"),
    "gelf-http": lambda: gelf("GelfHttpHandler"),
}
clients[kind]()

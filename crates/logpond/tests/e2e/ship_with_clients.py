"""Ships records with the clients of other systems, as a program would use them.

usage: ship_with_clients.py elasticsearch|loki|gelf-udp|gelf-tcp|gelf-http|fluent|otlp-grpc|otlp-http|grpc URL|ADDRESS COUNT
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
    assert answer["result"] == "created" and answer["_id"], answer
    assert answer["_shards"]["failed"] == 0 and answer["_seq_no"] == 0, answer
    assert client.indices.create(index="logs-new")["acknowledged"]
    assert client.indices.exists(index="logs-new")
    assert client.indices.put_mapping(index="logs-new", properties={})["acknowledged"]
    named = {"message": "a named one"}
    answer = client.index(index="logs-app", id="a/b c", document=named, refresh="wait_for")
    assert answer["_id"] == "a/b c", answer
    answer = client.create(index="logs-app", id="7", document=named)
    assert answer["result"] == "created", answer
    assert client.indices.refresh(index="logs-app")["_shards"]["failed"] == 0
    stored, errors = helpers.bulk(client, [{"_index": "logs-app", "_id": 8, **named}], refresh=True)
    assert (stored, errors) == (1, []), (stored, errors)
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


def otlp(exporter):
    from opentelemetry._logs import SeverityNumber
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource

    provider = LoggerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("shipping")
    for number in range(count):
        logger.emit(
            timestamp=1772409600000000000 + number,
            severity_number=SeverityNumber.WARN,
            body="shipped %d" % number,
            attributes={"number": number},
        )
    assert provider.force_flush()
    provider.shutdown()


def otlp_grpc():
    import grpc
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter

    otlp(OTLPLogExporter(endpoint=url, insecure=True, compression=grpc.Compression.Gzip))


def otlp_http():
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    otlp(OTLPLogExporter(endpoint=url + "/v1/logs"))


def calls():
    """What the library of gRPC reads of every kind of answer. COUNT is the longest line."""
    import os

    import grpc
    from google.rpc import status_pb2
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as service
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

    if "CA" in os.environ:
        with open(os.environ["CA"], "rb") as file:
            channel = grpc.secure_channel(url, grpc.ssl_channel_credentials(file.read()))
    else:
        channel = grpc.insecure_channel(url)
    metadata = [("authorization", "Bearer " + os.environ["TOKEN"])]

    def call(request, path="logs.v1.LogsService/Export", metadata=metadata, **options):
        name = "/opentelemetry.proto.collector." + path
        return channel.unary_unary(name)(request, metadata=metadata, timeout=60, **options)

    def fails(code, *arguments, **options):
        try:
            call(*arguments, **options)
        except grpc.RpcError as error:
            assert error.code() == code, error
            status = dict(error.trailing_metadata())["grpc-status-details-bin"]
            status = status_pb2.Status.FromString(status)
            assert (status.code, status.message) == (code.value[0], error.details()), status
            assert not status.details, status
            return error.details()
        raise AssertionError("it was taken")

    def request(*lines):
        request = service.ExportLogsServiceRequest()
        logs = request.resource_logs.add().scope_logs.add()
        for line in lines:
            logs.log_records.add(body=AnyValue(string_value=line))
        return request.SerializeToString()

    assert call(b"") == b""
    for compression in grpc.Compression:
        assert call(request("by gRPC"), compression=compression) == b""
    answer = service.ExportLogsServiceResponse.FromString(call(request("by gRPC", "x" * (count + 1))))
    assert answer.partial_success.rejected_log_records == 1, answer
    assert "line-bytes-max" in answer.partial_success.error_message, answer
    fails(grpc.StatusCode.INVALID_ARGUMENT, b"\xff")
    said = fails(grpc.StatusCode.UNIMPLEMENTED, b"", path="trace.v1.TraceService/Export")
    assert "takes logs only" in said, said
    fails(grpc.StatusCode.UNIMPLEMENTED, b"", path="metrics.v1.MetricsService/Export")
    fails(grpc.StatusCode.UNAUTHENTICATED, request("not by anybody"), metadata=[])
    reader = [("authorization", "Bearer " + os.environ["READER"])]
    fails(grpc.StatusCode.PERMISSION_DENIED, request("not by a reader"), metadata=reader)
    large = request(*["y" * (1 << 20)] * 40)
    fails(grpc.StatusCode.RESOURCE_EXHAUSTED, large)
    # What is long decompressed only is taken up to another limit.
    assert call(large, compression=grpc.Compression.Gzip) == b""


clients = {
    "elasticsearch": elasticsearch,
    "loki": loki,
    "fluent": fluent,
    "otlp-grpc": otlp_grpc,
    "otlp-http": otlp_http,
    "grpc": calls,
    "gelf-udp": lambda: gelf("GelfUdpHandler", compress=count % 2 == 0, chunk_size=1300),
    "gelf-tcp": lambda: gelf("GelfTcpHandler"),
    "gelf-http": lambda: gelf("GelfHttpHandler"),
}
clients[kind]()

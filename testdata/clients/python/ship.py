"""Sends the same records with one of the loggers of requirements.txt.

usage: ship.py KIND HOST:PORT COUNT
       ship.py KIND FILE COUNT, for kinds that end with "-file"

Each text begins with KIND. Records: one of each level, an error with its stack, text beyond ASCII, an object within an
object, two lines, one of a time long ago if the logger can, and COUNT in a burst.
"""
import logging
import logging.handlers
import socket
import sys

kind, address, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if not kind.endswith("-file"):
    host, port = address.split(":")[0], int(address.split(":")[1])
LONG_AGO = 1763719200.123


def ship(logger, fields=lambda **fields: {"extra": fields}, old=None):
    """Sends the records, and the one of long ago by `old(text)`."""
    logger.info(kind + " it started")
    logger.warning(kind + " it is slow", **fields(ms=12.5))
    try:
        raise ValueError("it failed")
    except ValueError:
        logger.exception(kind + " order failed")
    logger.info(kind + " grüße 日本 🎉")
    logger.info(kind + " nested", **fields(user={"id": 7, "name": "ann"}))
    logger.info(kind + " first line\n  second line")
    if old:
        old(kind + " long ago")
    for number in range(count):
        logger.info(kind + " burst %d" % number, **fields(number=number))


def with_logging(handler, formatter=None):
    """The handler of a library, or one of Python's own."""

    def failed(record):
        raise

    def old(text):
        record = logging.LogRecord("shop", logging.INFO, "ship.py", 1, text, (), None)
        record.created, record.msecs = LONG_AGO, 123
        handler.handle(record)

    handler.handleError = failed
    if formatter:
        handler.setFormatter(formatter)
    logger = logging.getLogger("shop")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    ship(logger, old=old)
    handler.flush()
    handler.close()


class Lines(logging.handlers.SocketHandler):
    """A socket that takes lines, as Python's documentation has it for other formats than pickle."""

    def makePickle(self, record):
        return (self.format(record) + "\n").encode()


def json_formatter():
    from pythonjsonlogger.json import JsonFormatter

    return JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s")


def syslog_handler():
    with_logging(logging.handlers.SysLogHandler((host, port), socktype=socket.SOCK_STREAM))


def syslog_handler_json():
    handler = logging.handlers.SysLogHandler((host, port), socktype=socket.SOCK_STREAM)
    with_logging(handler, json_formatter())


def with_structlog(*renderers):
    import structlog

    if kind.endswith("-file"):
        file = open(address, "w")
    else:
        file = socket.create_connection((host, port)).makefile("w")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            *renderers,
        ],
        logger_factory=structlog.PrintLoggerFactory(file),
    )
    ship(structlog.get_logger(), lambda **fields: fields)
    file.close()


def structlog_json():
    import structlog

    with_structlog(structlog.processors.JSONRenderer(ensure_ascii=False))


def structlog_pairs():
    import structlog

    with_structlog(structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]))


def structlog_console():
    import structlog

    with_structlog(structlog.dev.ConsoleRenderer(colors=False))


def with_loguru(target, **options):
    from loguru import logger

    class Fields:
        """loguru has fields by `bind`."""

        def __getattr__(self, level):
            return lambda text, **fields: getattr(logger.bind(**fields), level)(text)

    logger.remove()
    logger.add(target, **options)
    ship(Fields(), lambda **fields: fields)
    logger.remove()


def loguru_json():
    file = socket.create_connection((host, port)).makefile("w")
    with_loguru(file, serialize=True)
    file.close()


def logging_file():
    formatter = logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s")
    with_logging(logging.FileHandler(address, encoding="utf-8"), formatter)


def graypy():
    import graypy

    with_logging(graypy.GELFTCPHandler(host, port, localname="web-1"))


def splunk():
    from splunk_handler import SplunkHandler, force_flush

    handler = SplunkHandler(
        host=host, port=port, token="any", index="main", protocol="http", verify=False,
        record_format=True, hostname="web-1", source="shop"
    )
    with_logging(handler, json_formatter())
    force_flush()


kinds = {
    "graypy": graypy,
    "logging-file": logging_file,
    "loguru": loguru_json,
    "loguru-file": lambda: with_loguru(address),
    "loguru-json-file": lambda: with_loguru(address, serialize=True),
    "python-json-logger": lambda: with_logging(Lines(host, port), json_formatter()),
    "python-json-logger-file": lambda: with_logging(logging.FileHandler(address, encoding="utf-8"), json_formatter()),
    "splunk-handler": splunk,
    "structlog": structlog_json,
    "structlog-console-file": structlog_console,
    "structlog-json-file": structlog_json,
    "structlog-pairs": structlog_pairs,
    "SysLogHandler": syslog_handler,
    "SysLogHandler-json": syslog_handler_json,
}
kinds[kind]()

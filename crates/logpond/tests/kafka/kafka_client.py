"""What producers and operators do to a broker, for the tests: a line with JSON on standard input is a call,
and a line on standard output says that it is done."""

import json
import sys

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (AclBinding, AclOperation, AclPermissionType, AdminClient, NewTopic,
                                   ResourcePatternType, ResourceType)


def producer(brokers, codec="none", **settings):
    return Producer({
        "bootstrap.servers": brokers,
        "compression.type": codec,
        # What is sent again, for whatever reason, is there once.
        "enable.idempotence": True,
        "linger.ms": 5,
        # A broker that is started again is nothing to report.
        "log_level": 0,
        "message.max.bytes": 8 << 20,
        "queue.buffering.max.messages": 1_000_000,
        **settings,
    })


def done(futures):
    for future in futures.values():
        future.result()


def value(n, size=0):
    return json.dumps({"n": n, "text": "x" * size})


def send(to, topic, numbers, partitions, size=0):
    for n in numbers:
        partition = n % partitions
        headers = {"trace": f"t{n}"}
        to.produce(topic, key=f"key-{n % 5}", value=value(n, size), headers=headers, partition=partition)
        if n % 1000 == 0:
            to.poll(0)
    assert to.flush(60) == 0


def call(brokers, admin, it):
    topic = it.get("topic")
    match it["do"]:
        case "create":
            settings = it.get("settings", {})
            done(admin.create_topics([NewTopic(topic, it["partitions"], 1, config=settings)]))
        case "delete":
            done(admin.delete_topics([topic]))
        case "send":
            codec = it.get("codec", "none")
            numbers = range(it["from"], it["to"])
            send(producer(brokers, codec), topic, numbers, it["partitions"], it.get("size", 0))
        case "null":
            # Keys of one letter, of which a batch each becomes a thousand times smaller.
            to = producer(brokers, it.get("codec", "none"), **{"batch.size": 1 << 20})
            for _ in range(it.get("count", 1)):
                to.produce(topic, key="k" * it.get("size", 4), value=None, partition=0)
                to.poll(0)
            assert to.flush(60) == 0
        case "huge":
            # Each message becomes larger than anybody should take, whatever batches they are sent in.
            to = producer(brokers, "gzip", **{"message.max.bytes": 128 << 20})
            for _ in range(it["count"]):
                to.produce(topic, value="x" * (70 << 20), partition=0)
            assert to.flush(60) == 0
        case "transactions":
            # One that is thrown away and one that counts, of the same numbers.
            to = producer(brokers, **{"transactional.id": "tests"})
            to.init_transactions(60)
            for ends in (to.abort_transaction, to.commit_transaction):
                to.begin_transaction()
                send(to, topic, range(it["from"], it["to"]), it["partitions"])
                ends(60)
        case "deny":
            allowed = AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*",
                                 AclOperation.ALL, AclPermissionType.ALLOW)
            denied = AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, it["user"], "*",
                                AclOperation[it["right"]], AclPermissionType.DENY)
            done(admin.create_acls([allowed, denied]))
        case "remove_before":
            partition = TopicPartition(topic, 0, it["offset"])
            done(admin.delete_records([partition]))


def main():
    brokers = sys.argv[1]
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    for line in sys.stdin:
        call(brokers, admin, json.loads(line))
        print("done", flush=True)


main()

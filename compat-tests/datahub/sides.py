"""The two sides of a topic: pgQueue's client, and a Kafka client."""

import time
import uuid
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Optional

import psycopg2
from confluent_kafka import Producer
from confluent_client import consume
from pyclient import PATIENCE

# A package far below warns of another, whatever the filter says. The other modules take pgQueue's
# names from here.
with warnings.catch_warnings(record=True):
    from datahub.pgqueue.compression import PgQueuePayloadCompression, decode_stored, encode_inner, from_wire
    from datahub.pgqueue.repository import (  # noqa: F401
        EnqueueBatchItem,
        PgQueueRepository,
        stable_partition_id,
    )

#: What pgQueue's topic defaults are (datahub.pgqueue.config).
TOPIC_DEFAULTS = {
    "retention_max_age_seconds": 604800,
    "max_rows_per_topic": 0,
    "max_total_payload_bytes": 0,
}
MIME = "application/avro"
SNAPPY = int(PgQueuePayloadCompression.SNAPPY)


@dataclass
class Context:
    """Where a gateway serves which tables."""

    database_url: str
    schema: str
    prefix: str
    bootstrap: Optional[str]

    def topic(self, name):
        """A name that no other test and no earlier run has."""
        return f"{name}-{time.time_ns():x}"

    def connect(self):
        return psycopg2.connect(self.database_url)

    def rows(self, sql, *parameters):
        """Runs one statement in which {} stands for the schema and the prefix: `from {}_topic`."""
        return self.execute(sql, *parameters, rows=True)

    def execute(self, sql, *parameters, rows=False):
        """The same for a statement that has no rows to give."""
        connection = self.connect()
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(sql.replace("{}", f'"{self.schema}".{self.prefix}'), parameters or None)
                return cursor.fetchall() if rows else None
        finally:
            connection.close()


class Message(NamedTuple):
    """A message as pgQueue's client received it, its payload decompressed."""

    partition: int
    seq: int
    key: str
    payload: bytes
    headers: tuple
    handle: object
    priority: int
    content_type: Optional[str]


class Queue:
    """PgQueueRepository with a connection of its own; not for several threads at once."""

    def __init__(self, context, partitions=2):
        self.connection = context.connect()
        self.repository = PgQueueRepository(context.schema, context.prefix)
        self.defaults = {**TOPIC_DEFAULTS, "partition_count": partitions}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def make_topic(self, topic):
        topic_id = self.repository.ensure_topic(self.connection, topic, **self.defaults)
        self.connection.commit()
        return topic_id

    def topic_id(self, topic):
        row = self.repository.fetch_topic_row(self.connection, topic)
        self.connection.rollback()
        assert row is not None, f"pgQueue does not know the topic {topic}"
        return row[0]

    def enqueue(self, topic, key, payload, headers=(), priority=5, snappy=False, content_type=MIME):
        return self.repository.enqueue(
            self.connection,
            topic_name=topic,
            routing_key=key,
            priority=priority,
            payload=stored(payload, snappy),
            content_type=content_type,
            headers=headers,
            payload_compression=SNAPPY if snappy else 0,
            **self.defaults,
        )

    def enqueue_batch(self, topic, messages, snappy=False):
        """`messages`: (key, payload, headers) each."""
        items = [
            EnqueueBatchItem(
                topic_name=topic,
                routing_key=key,
                priority=5,
                payload=stored(payload, snappy),
                content_type=MIME,
                headers=headers,
                payload_compression=SNAPPY if snappy else 0,
            )
            for key, payload, headers in messages
        ]
        return self.repository.enqueue_batch(self.connection, items, **self.defaults)

    def receive(self, topic, group, most=100, owner=None, visible_after=600.0, partitions=None):
        row = self.repository.fetch_topic_row(self.connection, topic)
        self.connection.rollback()
        assert row is not None, f"pgQueue does not know the topic {topic}"
        received = self.repository.receive_batch_for_group(
            self.connection,
            consumer_group=group,
            topic_id=row[0],
            partition_ids=partitions or range(row[1]),
            lock_owner=owner or f"{group}:{uuid.uuid4()}",
            visibility_timeout=timedelta(seconds=visible_after),
            max_messages=most,
        )
        return [
            Message(
                message.handle.partition_id,
                message.handle.enqueue_seq,
                message.routing_key,
                decode_stored(message.payload, from_wire(message.payload_compression)),
                message.headers,
                message.handle,
                message.priority,
                message.content_type,
            )
            for message in received
        ]

    def commit(self, group, messages):
        return self.repository.commit_for_group(self.connection, group, [m.handle for m in messages])

    def drain(self, topic, group, partitions=None, most=100):
        """Everything that the group has not had, received and committed in batches."""
        out = []
        while True:
            batch = self.receive(topic, group, most, partitions=partitions)
            if not batch:
                return out
            assert self.commit(group, batch) == len(batch)
            out.extend(batch)

    def offset(self, topic, group, partition):
        return self.repository.get_committed_offset(self.connection, group, self.topic_id(topic), partition)


def stored(payload, snappy):
    return encode_inner(payload, PgQueuePayloadCompression.SNAPPY) if snappy else payload


def by_partition(items):
    """Messages of either side per partition, in the order they come in."""
    out = {}
    for item in items:
        out.setdefault(item.partition, []).append(item)
    return out


def kafka_read(context, topic):
    """Every record of the topic per partition, and that their offsets are gapless from 0."""
    partitions = by_partition(consume(context.bootstrap, topic))
    for partition, reads in partitions.items():
        offsets = [read.offset for read in reads]
        assert offsets == list(range(len(reads))), f"partition {partition}: offsets {offsets}"
    return partitions


class Acknowledged(NamedTuple):
    partition: int
    offset: int
    value: Optional[bytes]


class KafkaProducer:
    def __init__(self, context, **config):
        self.acknowledged = []
        self.errors = []
        self.producer = Producer(
            {
                "bootstrap.servers": context.bootstrap,
                "message.timeout.ms": PATIENCE * 1000,
                # pgQueue's own choice of partition: the CRC32 of the key.
                "partitioner": "consistent",
                **config,
            }
        )

    def send(self, topic, key=None, value=None, headers=(), partition=-1, timestamp=0):
        self.producer.produce(
            topic,
            key=key,
            value=value,
            headers=list(headers),
            partition=partition,
            timestamp=timestamp,
            on_delivery=self._delivered,
        )
        self.producer.poll(0)

    def _delivered(self, error, message):
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged.append(Acknowledged(message.partition(), message.offset(), message.value()))

    def flush(self):
        """Waits until everything is acknowledged; what was, in that order."""
        left = self.producer.flush(PATIENCE)
        assert not left and not self.errors, f"{left} not acknowledged, refused: {self.errors[:3]}"
        return self.acknowledged

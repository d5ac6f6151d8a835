"""kafka-python, old and new: both have the same interface."""

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from group_member import (
    HEARTBEAT_INTERVAL, POLL_RECORDS, REBALANCE_TIMEOUT, SESSION_TIMEOUT, Input, Processed, tell,
)
from pyclient import PATIENCE, Read


def produce(bootstrap, topic, codec, records):
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        acks="all",
        linger_ms=50,
        request_timeout_ms=PATIENCE * 1000,
    )
    sends = [
        producer.send(
            topic,
            partition=record.partition,
            key=record.key,
            value=record.value,
            headers=record.headers,
            timestamp_ms=record.timestamp,
        )
        for record in records
    ]
    producer.flush(PATIENCE)
    for send in sends:
        send.get(PATIENCE)
    producer.close()


def consume(bootstrap, topic):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    partitions = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = consumer.end_offsets(partitions)
    waiting = {partition for partition in partitions if consumer.position(partition) < ends[partition]}
    while waiting:
        batches = consumer.poll(timeout_ms=PATIENCE * 1000)
        if not batches:
            raise SystemExit(f"no record for {PATIENCE} s, still waiting for {waiting}")
        for partition, messages in batches.items():
            for message in messages:
                if message.offset < ends[partition]:
                    yield Read(
                        message.partition,
                        message.offset,
                        message.key,
                        message.value,
                        message.headers,
                        message.timestamp,
                    )
            if consumer.position(partition) >= ends[partition]:
                waiting.discard(partition)
    consumer.close()


#: How long a poll of a member waits, in ms. Version 3 may hang for good, every request answered, when a poll gives
#: up in the moment in which a rebalance ends: a longer one seldom does. It returns as soon as there are records.
PATIENT_POLL = 2_000


def group(assignors):
    """The verb for a version that has these assignors, by name."""

    def run(bootstrap, topic, name, assignor, instance_id):
        settings = {"group_instance_id": instance_id} if instance_id is not None else {}
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=name,
            partition_assignment_strategy=[assignors[assignor]],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL,
            max_poll_interval_ms=REBALANCE_TIMEOUT,
            **settings,
        )
        member = Member(consumer, topic)
        ends = Input()
        consumer.subscribe([topic], listener=member)
        try:
            while not ends.ended():
                for messages in consumer.poll(timeout_ms=PATIENT_POLL, max_records=POLL_RECORDS).values():
                    for message in messages:
                        member.processed.record(message.partition, message.offset, message.value)
                member.commit()
        except KeyboardInterrupt:
            pass  # the poll was waiting for a rebalance, see Input
        member.commit_all()
        consumer.close()
        tell("closed")

    return run


class Member(ConsumerRebalanceListener):
    def __init__(self, consumer, topic):
        self.consumer, self.topic, self.processed = consumer, topic, Processed()

    def on_partitions_assigned(self, assigned):
        self.processed.assigned([partition.partition for partition in assigned])

    def on_partitions_revoked(self, revoked):
        if revoked:
            self.processed.revoked([partition.partition for partition in revoked])

    def on_partitions_lost(self, lost):
        if lost:
            self.processed.revoked([partition.partition for partition in lost], "lost")

    def commit(self):
        """Does not wait for the answer, which may come after a rebalance: a cooperative member reads on."""
        offsets = self.processed.to_commit()
        if offsets:
            self.consumer.commit_async(
                self.positions(offsets), callback=lambda _offsets, answer: self.answered(offsets, answer)
            )

    def commit_all(self):
        offsets = self.processed.all_to_commit()
        if not offsets:
            return
        try:
            self.consumer.commit(self.positions(offsets))
        except KafkaError as error:
            self.answered(offsets, error)
        else:
            self.answered(offsets, None)

    def answered(self, offsets, answer):
        if isinstance(answer, Exception):
            self.processed.refused(offsets, answer)
        else:
            self.processed.committed(offsets)

    def positions(self, offsets):
        return {TopicPartition(self.topic, partition): next_offset(offset) for partition, offset in offsets.items()}


def next_offset(offset):
    # Version 3 has a leader epoch as well.
    return OffsetAndMetadata(*(offset, "", -1)[: len(OffsetAndMetadata._fields)])

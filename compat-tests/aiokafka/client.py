"""aiokafka: kafka-python's code on asyncio, with record batches in C."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError

from group_member import (
    HEARTBEAT_INTERVAL, POLL, POLL_RECORDS, REBALANCE_TIMEOUT, SESSION_TIMEOUT, Input, Processed, tell,
)
from pyclient import EVERYTHING, PATIENCE, Read, main

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


def produce(bootstrap, topic, codec, records):
    asyncio.run(send_all(bootstrap, topic, codec, records))


async def send_all(bootstrap, topic, codec, records):
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        acks="all",
        linger_ms=50,
        request_timeout_ms=PATIENCE * 1000,
    )
    await producer.start()
    try:
        sends = [
            await producer.send(
                topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                headers=record.headers,
                timestamp_ms=record.timestamp,
            )
            for record in records
        ]
        await producer.flush()
        await asyncio.gather(*sends)
    finally:
        await producer.stop()


def consume(bootstrap, topic):
    return asyncio.run(read_all(bootstrap, topic))


async def read_all(bootstrap, topic):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        # The client knows only topics that it was told to use, and forgets them without an assignment.
        await consumer._client.add_topic(topic)
        partitions = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        reads = []
        waiting = {partition for partition in partitions if await consumer.position(partition) < ends[partition]}
        while waiting:
            batches = await consumer.getmany(timeout_ms=PATIENCE * 1000)
            if not batches:
                raise SystemExit(f"no record for {PATIENCE} s, still waiting for {waiting}")
            for partition, messages in batches.items():
                reads.extend(read_of(message) for message in messages if message.offset < ends[partition])
                if await consumer.position(partition) >= ends[partition]:
                    waiting.discard(partition)
        return reads
    finally:
        await consumer.stop()


def read_of(message):
    return Read(
        message.partition, message.offset, message.key, message.value, message.headers, message.timestamp
    )


def group(bootstrap, topic, name, assignor, instance_id):
    asyncio.run(be_member(bootstrap, topic, name, assignor, instance_id))


async def be_member(bootstrap, topic, name, assignor, instance_id):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=name,
        group_instance_id=instance_id,
        partition_assignment_strategy=[ASSIGNORS[assignor]],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL,
        rebalance_timeout_ms=REBALANCE_TIMEOUT,
        max_poll_interval_ms=REBALANCE_TIMEOUT,
    )
    member = Member(consumer, topic)
    ends = Input()
    consumer.subscribe([topic], listener=member)
    await consumer.start()
    while not ends.ended():
        batches = await consumer.getmany(timeout_ms=POLL, max_records=POLL_RECORDS)
        async with member.processing:
            for messages in batches.values():
                for message in messages:
                    member.processed.record(message.partition, message.offset, message.value)
            await member.commit()
    await consumer.stop()
    tell("closed")


class Member(ConsumerRebalanceListener):
    def __init__(self, consumer, topic):
        self.consumer, self.topic, self.processed = consumer, topic, Processed()
        #: The client rebalances beside the loop: a revocation waits until the records of a poll are committed.
        self.processing = asyncio.Lock()

    async def on_partitions_assigned(self, assigned):
        self.processed.assigned([partition.partition for partition in assigned])

    async def on_partitions_revoked(self, revoked):
        async with self.processing:
            if revoked:
                self.processed.revoked([partition.partition for partition in revoked])

    async def commit(self):
        offsets = self.processed.to_commit()
        if not offsets:
            return
        try:
            await self.consumer.commit(
                {TopicPartition(self.topic, partition): offset for partition, offset in offsets.items()}
            )
        except KafkaError as error:
            self.processed.refused(offsets, error)
        else:
            self.processed.committed(offsets)


main(
    {
        **EVERYTHING,
        # The producer asserts that one of the two is there.
        "produce": {"null_key_and_value": False},
        # It has no cooperative assignor.
        "group": {"assignors": list(ASSIGNORS), "static": True, "rebalance_events": True},
    },
    produce, consume, group,
)

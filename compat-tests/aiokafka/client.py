"""aiokafka: kafka-python's code on asyncio, with record batches in C."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from pyclient import EVERYTHING, PATIENCE, Read, main


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


# The producer asserts that one of the two is there.
main({**EVERYTHING, "produce": {"null_key_and_value": False}}, produce, consume)

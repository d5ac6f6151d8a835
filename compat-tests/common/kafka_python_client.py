"""kafka-python, old and new: both have the same interface."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

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

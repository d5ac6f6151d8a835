"""confluent-kafka: the Python binding of librdkafka."""

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from pyclient import PATIENCE, Read


def produce(bootstrap, topic, codec, records):
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            # Long enough for records to gather in batches.
            "linger.ms": 50,
            "message.timeout.ms": PATIENCE * 1000,
        }
    )
    errors = []

    def acknowledged(error, _message):
        if error is not None:
            errors.append(error)

    for record in records:
        def send():
            producer.produce(
                topic,
                partition=record.partition,
                key=record.key,
                value=record.value,
                headers=record.headers,
                timestamp=record.timestamp,
                on_delivery=acknowledged,
            )

        try:
            send()
        except BufferError:
            producer.flush(PATIENCE)
            send()
    left = producer.flush(PATIENCE)
    if errors or left:
        raise SystemExit(f"{len(errors)} records refused, {left} not acknowledged: {errors[:1]}")


def consume(bootstrap, topic):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            # The class needs one; with an assignment and without commits no group comes to be.
            "group.id": "compat-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    metadata = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
    if metadata.error is not None:
        raise KafkaException(metadata.error)
    ends = {}
    for partition in metadata.partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE)
        if high > low:
            ends[partition] = low, high
    consumer.assign([TopicPartition(topic, partition, low) for partition, (low, _) in ends.items()])
    while ends:
        message = consumer.poll(PATIENCE)
        if message is None:
            raise SystemExit(f"no record for {PATIENCE} s, still waiting for {ends}")
        if message.error() is not None:
            raise KafkaException(message.error())
        partition = message.partition()
        if partition not in ends:
            continue  # past the end that was asked at the start
        yield Read(
            partition,
            message.offset(),
            message.key(),
            message.value(),
            message.headers() or [],
            message.timestamp()[1],
        )
        if message.offset() + 1 >= ends[partition][1]:
            del ends[partition]
    consumer.close()

"""Writers of both kinds on the same partitions at the same time."""

import random
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, TopicPartition
from harness import test
from pgqueue_alone import KEYS
from pyclient import PATIENCE
from sides import KafkaProducer, Queue, by_partition, kafka_read

#: Seconds after which a writer that has not ended hangs: Postgres breaks a deadlock after one.
LIMIT = 150


class Writers:
    """Threads that each write `WRITER:NUMBER` values, numbered from 0 up, and their errors."""

    def __init__(self):
        self.threads, self.errors, self.counts = [], [], {}

    def add(self, name, count, write):
        def run():
            try:
                write(name)
            except Exception as error:
                self.errors.append(f"{name}: {type(error).__name__}: {error}")

        self.counts[name] = count
        self.threads.append(threading.Thread(target=run, name=name, daemon=True))

    def run(self):
        for thread in self.threads:
            thread.start()
        deadline = time.monotonic() + LIMIT
        for thread in self.threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        hanging = [thread.name for thread in self.threads if thread.is_alive()]
        assert not hanging, f"still at work after {LIMIT} s: {hanging}"
        assert not self.errors, self.errors

    def values(self):
        return [value(name, i) for name, count in self.counts.items() for i in range(count)]


def value(name, number):
    return f"{name}:{number}".encode()


def enqueue_one_by_one(context, topic, partitions, count):
    def write(name):
        with Queue(context, partitions) as queue:
            for i in range(count):
                queue.enqueue(topic, KEYS[i % len(KEYS)], value(name, i), snappy=i % 2 == 1)

    return write


def enqueue_in_batches(context, topic, partitions, batches, size):
    """Batches lock their partitions in the order of their items, which is never the same here."""

    def write(name):
        order = random.Random(name)
        with Queue(context, partitions) as queue:
            for batch in range(batches):
                keys = [order.choice(KEYS) for _ in range(size)]
                queue.enqueue_batch(
                    topic, [(key, value(name, batch * size + i), ()) for i, key in enumerate(keys)]
                )

    return write


def produce(context, topic, count, pause=0.0, **config):
    def write(name):
        producer = KafkaProducer(context, **config)
        for i in range(count):
            producer.send(topic, key=KEYS[i % len(KEYS)].encode(), value=value(name, i))
            if pause:
                time.sleep(pause)
        assert len(producer.flush()) == count

    return write


class Follower:
    """A Kafka consumer at the end while the writers write: it must never miss a record that comes later."""

    def __init__(self, context, topic, partitions):
        self.consumer = Consumer({"bootstrap.servers": context.bootstrap, "group.id": "follower"})
        self.consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self.read = {partition: [] for partition in range(partitions)}
        self.error = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while not self.stop.is_set():
            message = self.consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                self.error = message.error()
                return
            due = len(self.read[message.partition()])
            if message.offset() != due:
                self.error = f"partition {message.partition()}: offset {message.offset()} where {due} was due"
                return
            self.read[message.partition()].append(message.value())

    def finish(self, total):
        deadline = time.monotonic() + PATIENCE
        while self.error is None and sum(map(len, self.read.values())) < total and time.monotonic() < deadline:
            time.sleep(0.1)
        self.stop.set()
        self.thread.join(PATIENCE)
        self.consumer.close()
        assert self.error is None, self.error
        return self.read


class Worker:
    """A pgQueue worker that receives and commits while the writers write."""

    def __init__(self, context, topic, partitions):
        self.received, self.error = [], None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._work, args=(context, topic, partitions), daemon=True)
        self.thread.start()

    def _work(self, context, topic, partitions):
        try:
            with Queue(context, partitions) as queue:
                while True:
                    last = self.stop.is_set()
                    batch = queue.drain(topic, "worker")
                    self.received.extend(batch)
                    if last:
                        return
                    time.sleep(0 if batch else 0.05)
        except Exception as error:
            self.error = error

    def finish(self):
        self.stop.set()
        self.thread.join(LIMIT)
        assert not self.thread.is_alive(), "the pgQueue worker hangs"
        assert self.error is None, repr(self.error)
        return by_partition(self.received)


def deadlocks(context):
    ((count,),) = context.rows("select deadlocks from pg_stat_database where datname = current_database()")
    return count


def write_together(context, topic, partitions, writers):
    with Queue(context, partitions) as queue:
        queue.make_topic(topic)
    before = deadlocks(context)
    follower = Follower(context, topic, partitions)
    worker = Worker(context, topic, partitions)
    writers.run()
    followed = follower.finish(sum(writers.counts.values()))
    received = worker.finish()
    print(f"  {sum(writers.counts.values())} records; deadlocks that Postgres broke: {deadlocks(context) - before}")
    check_rows(context, topic, partitions)
    read = kafka_read(context, topic)
    check_values(writers, read)
    for partition in range(partitions):
        in_kafka = [record.value for record in read.get(partition, [])]
        assert followed[partition] == in_kafka, f"partition {partition}: the follower read something else"
        assert [m.payload for m in received.get(partition, [])] == in_kafka, f"partition {partition}: the worker"
    with Queue(context, partitions) as queue:
        afterwards = by_partition(queue.drain(topic, "afterwards"))
        for partition, messages in afterwards.items():
            assert [m.payload for m in messages] == [r.value for r in read[partition]], partition
            assert [m.seq for m in messages] == [r.offset + 1 for r in read[partition]], partition
    check_no_lock_left(context)


def check_rows(context, topic, partitions):
    """No duplicate and no hole in enqueue_seq, counted by Postgres."""
    rows = context.rows(
        """
        select partition_id, count(*), count(distinct enqueue_seq), min(enqueue_seq), max(enqueue_seq)
        from {}_message where topic_id = (select id from {}_topic where topic_name = %s)
        group by partition_id
        """,
        topic,
    )
    assert rows and len(rows) <= partitions, rows
    for partition, count, distinct, lowest, highest in rows:
        assert count == distinct == highest and lowest == 1, (partition, count, distinct, lowest, highest)


def check_values(writers, read):
    values = [record.value for records in read.values() for record in records]
    expected = Counter(writers.values())
    found = Counter(values)
    assert found == expected, f"missing {list(expected - found)[:5]}, too many {list(found - expected)[:5]}"
    # Each writer's records stand in the order in which it wrote them.
    for partition, records in read.items():
        last = {}
        for record in records:
            name, number = record.value.decode().rsplit(":", 1)
            assert last.get(name, -1) < int(number), (partition, record.offset, record.value)
            last[name] = int(number)


def check_no_lock_left(context):
    deadline = time.monotonic() + 5
    while True:
        locks = context.rows(
            "select pid, granted from pg_locks where locktype = 'advisory' "
            "and database = (select oid from pg_database where datname = current_database())"
        )
        if not locks:
            return
        assert time.monotonic() < deadline, f"advisory locks left: {locks}"
        time.sleep(0.2)


@test(kafka=True)
def on_one_partition(context):
    topic = context.topic("one-partition")
    writers = Writers()
    for i in range(2):
        writers.add(f"enqueue-{i}", 60, enqueue_one_by_one(context, topic, 1, 60))
        writers.add(f"batch-{i}", 200, enqueue_in_batches(context, topic, 1, 10, 20))
        writers.add(f"kafka-{i}", 400, produce(context, topic, 400, pause=0.005, **{"linger.ms": 5}))
    writers.add("idempotent", 400, produce(context, topic, 400, pause=0.005, **{"enable.idempotence": True}))
    writers.add("slow", 150, produce(context, topic, 150, pause=0.02, **{"linger.ms": 0}))
    write_together(context, topic, 1, writers)


@test(kafka=True)
def on_many_partitions_locked_in_any_order(context):
    topic = context.topic("many-partitions")
    writers = Writers()
    for i in range(2):
        writers.add(f"enqueue-{i}", 40, enqueue_one_by_one(context, topic, 6, 40))
    for i in range(3):
        writers.add(f"batch-{i}", 300, enqueue_in_batches(context, topic, 6, 15, 20))
    for i in range(3):
        writers.add(f"kafka-{i}", 500, produce(context, topic, 500, pause=0.005, **{"linger.ms": 5}))
    writers.add("idempotent", 500, produce(context, topic, 500, pause=0.005, **{"enable.idempotence": True}))
    write_together(context, topic, 6, writers)

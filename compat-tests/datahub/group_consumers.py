"""Consumers of both kinds for one group, and what each of them did with which record, and when.

As a program it is one of them, in a process that can be killed:

    group_consumers.py kafka|pgqueue DATABASE_URL SCHEMA PREFIX BOOTSTRAP TOPIC GROUP

It prints a line `PARTITION SEQ` for each record that it has begun with, and commits nothing.
"""

import sys
import threading
import time
import uuid
from typing import NamedTuple, Optional

from confluent_kafka import Consumer, KafkaException, TopicPartition
from sides import Context, Queue

#: Seconds of a Kafka member's session, the shortest that the gateway grants.
SESSION = 6
#: Seconds of a pgQueue worker's lease.
VISIBLE = 5
#: Seconds of work for a record.
WORK = 0.001


class Processing(NamedTuple):
    kind: str
    partition: int
    seq: int
    #: When the consumer asked where the group is: a worker with each receive, a member when it got
    #: the partition.
    asked: float
    begin: float
    #: When the commit was acknowledged; None if it was not.
    done: Optional[float]


class GroupConsumer(threading.Thread):
    """Processes and commits from start() to finish()."""

    def __init__(self, context, topic, group):
        super().__init__(daemon=True)
        self.context, self.topic, self.group = context, topic, group
        self.processed, self.stopped, self.error = [], threading.Event(), None

    def run(self):
        try:
            self.consume()
        except Exception as error:
            self.error = error

    def process(self, records, commit):
        """`records`: (partition, seq, asked) each."""
        begun = []
        for record in records:
            begun.append((*record, time.monotonic()))
            time.sleep(WORK)
        done = time.monotonic() if commit() else None
        self.processed += [Processing(self.kind, *record, done) for record in begun]

    def check(self):
        if self.error is not None:
            raise self.error

    def stop(self):
        self.stopped.set()

    def finish(self, patience):
        """Stops in order; what it has processed is committed."""
        self.stop()
        self.join(patience)
        assert not self.is_alive(), f"a {self.kind} consumer hangs"
        self.check()
        return self.processed


class KafkaMember(GroupConsumer):
    kind = "kafka"

    def __init__(self, context, topic, group, session=45):
        super().__init__(context, topic, group)
        #: {partition: since when it is this member's}
        self.partitions = {}
        self.consumer = Consumer(
            {
                "bootstrap.servers": context.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": session * 1000,
                "heartbeat.interval.ms": 1000,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )

    def consume(self):
        self.consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked)
        try:
            while not self.stopped.is_set():
                self.step()
        finally:
            self.consumer.close()

    def step(self):
        messages = self.consumer.consume(20, timeout=0.1)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        if messages:
            records = [(m.partition(), m.offset() + 1, self.partitions[m.partition()]) for m in messages]
            self.process(records, lambda: self.commit(messages))

    def commit(self, messages):
        ends = {message.partition(): message.offset() + 1 for message in messages}
        committed = self.consumer.commit(
            offsets=[TopicPartition(self.topic, partition, end) for partition, end in ends.items()],
            asynchronous=False,
        )
        assert all(partition.error is None for partition in committed), committed
        return True

    def _assigned(self, _, partitions):
        self.partitions = {partition.partition: time.monotonic() for partition in partitions}

    def _revoked(self, _, partitions):
        self.partitions = {}


class PgQueueWorker(GroupConsumer):
    kind = "pgqueue"

    def __init__(self, context, topic, group, visible_after=600.0):
        super().__init__(context, topic, group)
        self.visible_after = visible_after
        #: Asked for records and got none.
        self.refused = 0

    def consume(self):
        with Queue(self.context) as self.queue:
            self.queue.repository.register_consumer(
                self.queue.connection, self.group, self.queue.topic_id(self.topic)
            )
            self.owner = f"{self.group}:{uuid.uuid4()}"
            while not self.stopped.is_set():
                self.step()

    def step(self):
        asked = time.monotonic()
        messages = self.queue.receive(self.topic, self.group, 10, self.owner, self.visible_after)
        if messages:
            records = [(message.partition, message.seq, asked) for message in messages]
            self.process(records, lambda: self.commit(messages))
        else:
            self.refused += 1
            self.stopped.wait(0.01)

    def commit(self, messages):
        return self.queue.commit(self.group, messages) == len(messages)


def say(records, _):
    for partition, seq, _ in records:
        print(partition, seq, flush=True)


def main(kind, database_url, schema, prefix, bootstrap, topic, group):
    context = Context(database_url, schema, prefix, bootstrap)
    if kind == "kafka":
        consumer = KafkaMember(context, topic, group, SESSION)
    else:
        consumer = PgQueueWorker(context, topic, group, visible_after=float(VISIBLE))
    consumer.process = say
    consumer.consume()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Kafka members and pgQueue workers with the same group name: in turns, at the same time, killed.

GROUP_TURNS=N makes the tests with turns longer; `make soak` does."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from group_consumers import SESSION, VISIBLE, KafkaMember, PgQueueWorker
from harness import test
from pgqueue_alone import KEYS
from sides import KafkaProducer, Queue

#: How often the kinds change in a test with turns.
TURNS = int(os.environ.get("GROUP_TURNS", "4"))
PARTITIONS = 3
#: Seconds in which whatever is waited for must come, on a machine that is busy with other things.
PATIENCE = 120
#: Seconds after which a lease of a Kafka member would have run out by itself: its session timeout
#: and the gateway's --coordinator-lease-ms.
RUN_OUT = 45 + 6


def wait(until, what, patience=PATIENCE, consumers=()):
    deadline = time.monotonic() + patience
    while not until():
        for consumer in consumers:
            consumer.check()
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(0.02)


class Log:
    """A topic, a group and writers of both kinds."""

    def __init__(self, context, name):
        self.context, self.topic, self.group = context, context.topic(name), context.topic("group")
        self.written, self.consumers = 0, []
        self.producer = KafkaProducer(context)
        with Queue(context, PARTITIONS) as queue:
            self.topic_id = queue.make_topic(self.topic)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Those of a test that failed would go on.
        for consumer in self.consumers:
            consumer.stop()

    def produce(self, count):
        for i in range(count):
            self.producer.send(self.topic, key=KEYS[i % len(KEYS)].encode(), value=b"kafka")
        self.producer.flush()
        self.written += count

    def enqueue(self, queue, count, priority=lambda _: 5):
        for i in range(count):
            queue.enqueue(self.topic, KEYS[i % len(KEYS)], b"pgqueue", priority=priority(i))
        self.written += count

    @contextmanager
    def writers(self):
        """Write until the end of the block, a little at a time."""
        stop, errors = threading.Event(), []
        lock = threading.Lock()

        def write(once):
            try:
                while not stop.wait(0.05):
                    with lock:
                        once()
            except Exception as error:
                errors.append(error)

        with Queue(self.context, PARTITIONS) as queue:
            threads = [
                threading.Thread(target=write, args=(once,))
                for once in (lambda: self.produce(7), lambda: self.enqueue(queue, 3))
            ]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                stop.set()
                for thread in threads:
                    thread.join(PATIENCE)
        assert not errors, errors

    def ends(self):
        return dict(
            self.context.rows(
                "select partition_id, max(enqueue_seq) from {}_message where topic_id = %s group by 1",
                self.topic_id,
            )
        )

    def offsets(self):
        return dict(
            self.context.rows(
                "select partition_id, offset_value from {}_consumer_offset "
                "where consumer_group = %s and topic_id = %s",
                self.group,
                self.topic_id,
            )
        )

    def member(self):
        return self._start(KafkaMember(self.context, self.topic, self.group))

    def worker(self):
        return self._start(PgQueueWorker(self.context, self.topic, self.group))

    def _start(self, consumer):
        self.consumers.append(consumer)
        consumer.start()
        return consumer

    def check(self, processed):
        """All records were processed and are committed; none that was committed came again."""
        ends = self.ends()
        assert sum(ends.values()) == self.written, (ends, self.written)
        assert self.offsets() == ends, (self.offsets(), ends)
        of_record = {}
        for processing in sorted(processed, key=lambda p: p.begin):
            of_record.setdefault((processing.partition, processing.seq), []).append(processing)
        missing = [
            (partition, seq)
            for partition, end in ends.items()
            for seq in range(1, end + 1)
            if (partition, seq) not in of_record
        ]
        assert not missing, f"skipped: {missing[:10]}"
        for processings in of_record.values():
            for first, second in zip(processings, processings[1:]):
                assert first.done is None or first.done > second.asked, f"again: {first}, {second}"
        return [processings for processings in of_record.values() if len(processings) > 1]


def finish(consumers):
    for consumer in consumers:
        consumer.stop()
    return [processing for consumer in consumers for processing in consumer.finish(PATIENCE)]


def owns_everything(member):
    return lambda: len(member.partitions) == PARTITIONS


@test(kafka=True)
def handed_over_in_turns_under_load(context):
    with Log(context, "turns") as log:
        processed = []
        with log.writers():
            for turn in range(TURNS):
                consumers = [(log.member, log.worker)[turn % 2]() for _ in range(2)]
                wait(
                    lambda: sum(len(c.processed) for c in consumers) > 150,
                    f"turn {turn}",
                    # Who leaves in order leaves at once.
                    RUN_OUT * 0.8,
                    consumers,
                )
                processed += finish(consumers)
        last = (log.member, log.worker)[TURNS % 2]()
        wait(lambda: log.offsets() == log.ends(), "the rest", consumers=[last])
        processed += finish([last])
        repeated = log.check(processed)
        assert not repeated, f"an orderly handover repeats nothing: {repeated[:3]}"
        kinds = {kind: sum(p.kind == kind for p in processed) for kind in ("kafka", "pgqueue")}
        print(f"  {log.written} records in {TURNS} turns: {kinds}")


@test(kafka=True)
def workers_get_nothing_of_what_a_member_owns(context):
    """Neither what is there nor what arrives where all was read, whoever writes it, of any priority."""
    with Log(context, "owned") as log:
        member = log.member()
        wait(owns_everything(member), "the assignment", consumers=[member])
        workers = [log.worker(), log.worker()]
        with Queue(context, PARTITIONS) as queue:
            for burst in range(6 * TURNS):
                if burst % 2:
                    log.produce(3)
                else:
                    log.enqueue(queue, 3, priority=lambda i: (5, 0, 3, 9)[(burst // 2 + i) % 4])
                refused = {worker: worker.refused for worker in workers}
                wait(lambda: log.offsets() == log.ends(), f"burst {burst}", consumers=[member, *workers])
                wait(lambda: all(w.refused > refused[w] for w in workers), "workers ask", consumers=workers)
        taken = [processing for worker in workers for processing in worker.processed]
        assert not taken, f"{len(taken)} records, first {taken[:3]}"
        processed = finish([member])
        log.produce(20)
        wait(lambda: log.offsets() == log.ends(), "workers go on", RUN_OUT * 0.8, workers)
        processed += finish(workers)
        assert not log.check(processed)


@test(kafka=True)
def a_member_that_joins_shares_only_what_a_worker_has_in_flight(context):
    with Log(context, "joins") as log:
        processed, owned = [], []
        with log.writers():
            worker = log.worker()
            for _ in range(TURNS):
                before = len(worker.processed)
                wait(lambda: len(worker.processed) > before + 50, "the worker", consumers=[worker])
                member = log.member()
                wait(owns_everything(member), "the assignment", consumers=[member])
                since = max(member.partitions.values())
                wait(lambda: len(member.processed) > 50, "the member", consumers=[member, worker])
                owned.append((since, time.monotonic()))
                processed += finish([member])
        wait(lambda: log.offsets() == log.ends(), "the rest", consumers=[worker])
        processed += finish([worker])
        shared = log.check(processed)
        for since, until in owned:
            taken = [p for p in processed if p.kind == "pgqueue" and since < p.asked and p.begin < until]
            assert not taken, f"taken from a member: {taken[:3]}"
        print(f"  {log.written} records, {len(shared)} of them in flight when a member came")


@test(kafka=True)
def a_commit_that_moves_backwards_makes_the_records_come_again_for_both(context):
    with Log(context, "backwards") as log:
        log.produce(60)
        ends = log.ends()
        admin = AdminClient({"bootstrap.servers": context.bootstrap})
        acked = (
            "select count(*) from {}_message_group_lease l join {}_message m on m.id = l.message_id "
            "and m.enqueued_at = l.message_enqueued_at "
            "where l.consumer_group = %s and l.lock_owner = '__acked__' and m.enqueue_seq > %s"
        )
        for reader in (log.worker, log.member, log.member, log.worker, log.worker):
            consumer = reader()
            wait(lambda: log.offsets() == ends, f"a {consumer.kind} consumer", consumers=[consumer])
            processed = {(p.partition, p.seq) for p in finish([consumer])}
            first = {partition: min(seq for p, seq in processed if p == partition) for partition in ends}
            assert len(processed) == sum(ends.values()) - sum(first.values()) + len(ends), processed
            assert set(first.values()) in ({1}, {4}), first
            reset = [TopicPartition(log.topic, partition, 3) for partition in ends]
            answers = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(log.group, reset)])
            answers[log.group].result(PATIENCE)
            assert log.offsets() == dict.fromkeys(ends, 3)
            assert context.rows(acked, log.group, 3) == [(0,)]


@contextmanager
def process(log, kind):
    """A consumer of its own process: gives the records that it began with."""
    begun = []
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("group_consumers.py")), kind, log.context.database_url,
         log.context.schema, log.context.prefix, log.context.bootstrap, log.topic, log.group],
        stdout=subprocess.PIPE, text=True,
    )
    reader = threading.Thread(
        target=lambda: begun.extend(tuple(map(int, line.split())) for line in child.stdout), daemon=True
    )
    reader.start()
    try:
        yield child, begun
    finally:
        child.kill()
        child.wait()
        reader.join(PATIENCE)


@test(kafka=True)
def workers_take_over_from_a_member_that_was_killed(context):
    with Log(context, "killed-member") as log:
        log.produce(30)
        with process(log, "kafka") as (child, begun):
            wait(lambda: begun, "the member")
            worker = log.worker()
            wait(lambda: worker.refused > 3, "the worker is kept off", consumers=[worker])
            assert not worker.processed
            child.kill()
            killed = time.monotonic()
            wait(lambda: log.offsets() == log.ends(), "the worker", consumers=[worker])
            after = min(p.begin for p in worker.processed) - killed
            # The member's last heartbeat was up to a second before it died.
            assert after > SESSION - 2, f"{after} s"
            print(f"  {after:.1f} s after kill -9, session timeout {SESSION} s")
        assert not log.check(finish([worker]))


@test(kafka=True)
def members_and_workers_take_over_from_a_worker_that_was_killed(context):
    with Log(context, "killed-worker") as log:
        for successor in (log.member, log.worker):
            log.produce(30)
            with process(log, "pgqueue") as (child, begun):
                wait(lambda: begun, "the worker")
                child.kill()
                killed = time.monotonic()
                consumer = successor()
                wait(lambda: log.offsets() == log.ends(), "the successor", consumers=[consumer])
                taken_over = set(begun) & {(p.partition, p.seq) for p in finish([consumer])}
                assert taken_over == set(begun), "what was in flight"
                seconds = time.monotonic() - killed
                print(f"  a {consumer.kind} consumer has all after {seconds:.1f} s, leases of {VISIBLE} s")


@test(kafka=True)
def aggressive_retention_waits_for_kafka_groups(context):
    with Log(context, "retention") as log:
        retention = Path(__file__).with_name("retention.sql").read_text(encoding="utf-8")
        context.execute(retention.replace("__SCHEMA__", context.schema).replace("__PREFIX__", context.prefix))
        context.execute("update {}_topic set aggressive_retention = true where id = %s", log.topic_id)
        log.produce(60)
        ends = log.ends()

        def left():
            with Queue(context) as queue:
                queue.repository.apply_topic_retention(queue.connection)
                queue.connection.commit()
            return dict(
                context.rows(
                    "select partition_id, min(enqueue_seq) from {}_message where topic_id = %s group by 1",
                    log.topic_id,
                )
            )

        # pgQueue's own group is through, the Kafka group has committed 4 of each partition.
        with Queue(context) as queue:
            queue.repository.register_consumer(queue.connection, "through", log.topic_id)
            assert len(queue.drain(log.topic, "through")) == 60
        member = Consumer(
            {"bootstrap.servers": context.bootstrap, "group.id": log.group, "enable.auto.commit": False,
             "auto.offset.reset": "earliest"}
        )
        member.subscribe([log.topic])
        wait(lambda: member.poll(0.1) is not None, "the member")
        age = "select extract(epoch from now() - last_heartbeat_at) from {}_consumer_registration " \
            "where topic_id = %s and consumer_group = %s"
        wait(lambda: context.rows(age, log.topic_id, log.group), "the registration")
        assert left() == dict.fromkeys(ends, 1), "nothing is committed"
        four = [TopicPartition(log.topic, partition, 4) for partition in ends]
        member.commit(offsets=four, asynchronous=False)
        assert left() == dict.fromkeys(ends, 5)
        ((seconds,),) = context.rows(age, log.topic_id, log.group)
        assert seconds < 90, f"the last heartbeat is {seconds} s old"
        # The rest is read in spite of it, and goes with its commit; pgQueue keeps the last row.
        member.close()
        assert left() == dict.fromkeys(ends, 5), "a group that is switched off comes back for its records"
        consumer = log.member()
        wait(lambda: log.offsets() == ends, "the rest", consumers=[consumer])
        assert len(finish([consumer])) == sum(end - 4 for end in ends.values())
        assert left() == ends

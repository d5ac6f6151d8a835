"""Every client produces with each of its codecs into a topic of its own, then every client reads every topic."""

import time
from concurrent.futures import ThreadPoolExecutor

from .capability import beyond, counted, for_verb
from .client import Client, Failed
from .expected import Mismatch, Topic, line_of
from .generated import generate


class Tally:
    """Prints every failure when it happens, and counts."""

    def __init__(self):
        self.passed = 0
        self.failures = []

    def passes(self):
        self.passed += 1

    def fails(self, what, why):
        self.failures.append(what)
        print(f"FAILED {what}: {why}", flush=True)


def run(clients, bootstrap, work, quick, jobs, tally):
    records = generate(quick)
    with ThreadPoolExecutor(jobs) as pool:
        topics = produce_all(pool, clients, records, bootstrap, work, tally)
        cells = consume_all(pool, clients, topics, bootstrap, tally)
    print_matrix(clients, topics, cells)


def build_all(folders, work, tally):
    built = []
    for client in [Client(folder, work) for folder in folders]:
        started = time.monotonic()
        try:
            client.build()
            for verb in ("produce", "consume"):
                for_verb(client.capabilities, verb)
            built.append(client)
            print(f"built {client.name} ({time.monotonic() - started:.0f} s)", flush=True)
        except (Failed, ValueError) as error:
            tally.fails(f"{client.name} build", error)
    return built


def produce_all(pool, clients, records, bootstrap, work, tally):
    run_id = f"{time.time_ns() // 1_000_000:x}"
    waiting = []
    for client in clients:
        capabilities = for_verb(client.capabilities, "produce")
        lacking = [(record, beyond(record, capabilities)) for record in records]
        # Without its timestamp a record is still worth sending.
        sent = [record for record, fields in lacking if not set(fields) - {"timestamp"}]
        path = work / f"{client.name}.jsonl"
        path.write_text("".join(line_of(record) + "\n" for record in sent), encoding="ascii")
        unsent = [name for _, fields in lacking for field, name in fields.items() if field != "timestamp"]
        blind = sum("timestamp" in fields for _, fields in lacking)
        print(
            f"{client.name} produces {len(sent)} of {len(records)} records with each of "
            f"{' '.join(capabilities['codecs'])}; cannot send: {counted(unsent)}"
            + (f"; timestamps that it cannot give: {blind}" if blind else ""),
            flush=True,
        )
        topic = Topic(
            f"compat-{run_id}-{client.name}", client, capabilities["codecs"], sent,
            lambda record, capabilities=capabilities: beyond(record, capabilities),
        )
        waiting.append(pool.submit(produce, topic, bootstrap, path))
    topics = []
    for result in waiting:
        topic, failures = result.result()
        for codec, error in failures:
            tally.fails(f"{topic.client.name} produces with {codec}", error)
        for _ in topic.codecs:
            tally.passes()
        if topic.codecs:
            topics.append(topic)
    return topics


def produce(topic, bootstrap, path, failures=()):
    """One codec after the other. Returns the topic with all that the client could send, and (codec, error)s."""
    for codec in topic.codecs:
        try:
            topic.client.produce(bootstrap, topic.name, codec, path)
        except Failed as error:
            # Nobody knows which of these records arrived: the other codecs get a topic without them.
            return produce(topic.without(codec), bootstrap, path, (*failures, (codec, error)))
    return topic, failures


def consume_all(pool, clients, topics, bootstrap, tally):
    """{(topic, client name): passed}"""
    waiting = []
    for topic in topics:
        for client in clients:
            waiting.append((topic, client, pool.submit(consume, client, topic, bootstrap)))
    cells, left_out = {}, {}
    for topic, client, result in waiting:
        try:
            left_out.setdefault(client.name, []).extend(result.result())
            cells[topic.name, client.name] = True
            tally.passes()
        except (Failed, Mismatch) as error:
            cells[topic.name, client.name] = False
            tally.fails(f"{client.name} reads what {topic.client.name} sent", error)
    for name, names in left_out.items():
        print(f"{name} reads; fields not compared: {counted(names)}")
    return cells


def consume(client, topic, bootstrap):
    capabilities = for_verb(client.capabilities, "consume")
    return topic.check(client.consume(bootstrap, topic.name), lambda record: beyond(record, capabilities))


def print_matrix(clients, topics, cells):
    print("\nRows: who sent, and with which codecs. Columns: who read, numbered in the same order.")
    numbers = {client.name: str(i + 1) for i, client in enumerate(clients)}
    labels = {topic.name: f"{numbers[topic.client.name]:>2} {topic.client.name}" for topic in topics}
    width = max(map(len, labels.values()), default=0)
    print(" " * width + "".join(f"{number:>5}" for number in numbers.values()))
    for topic in topics:
        row = "".join(f"{'ok' if cells[topic.name, name] else 'FAIL':>5}" for name in numbers)
        print(f"{labels[topic.name]:<{width}}{row}   {' '.join(topic.codecs)}")
    print()

"""Every client produces with each of its codecs, then every client reads every topic."""

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


def run(folders, bootstrap, work, quick, jobs):
    (work / "logs").mkdir(parents=True, exist_ok=True)
    tally = Tally()
    clients = build_all([Client(folder, work) for folder in folders], tally)
    records = generate(quick)
    with ThreadPoolExecutor(jobs) as pool:
        topics = produce_all(pool, clients, records, bootstrap, work, tally)
        cells = consume_all(pool, clients, topics, bootstrap, tally)
    print_matrix(clients, topics, cells)
    return tally


def build_all(clients, tally):
    built = []
    for client in clients:
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
            f"{client.name} produces {len(sent)} of {len(records)} records; cannot send: {counted(unsent)}"
            + (f"; timestamps that it cannot give: {blind}" if blind else ""),
            flush=True,
        )
        for codec in capabilities["codecs"]:
            topic = Topic(
                f"compat-{run_id}-{client.name}-{codec}", client, codec, sent,
                lambda record, capabilities=capabilities: beyond(record, capabilities),
            )
            waiting.append((topic, pool.submit(client.produce, bootstrap, topic.name, codec, path)))
    topics = []
    for topic, result in waiting:
        try:
            result.result()
            topics.append(topic)
            tally.passes()
        except Failed as error:
            tally.fails(f"{topic.client.name} produces with {topic.codec}", error)
    return topics


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
            tally.fails(f"{client.name} reads what {topic.client.name} sent with {topic.codec}", error)
    for name, names in left_out.items():
        print(f"{name} reads; fields not compared: {counted(names)}")
    return cells


def consume(client, topic, bootstrap):
    capabilities = for_verb(client.capabilities, "consume")
    return topic.check(client.consume(bootstrap, topic.name), lambda record: beyond(record, capabilities))


def print_matrix(clients, topics, cells):
    print("\nRows: who sent. Columns: who read, numbered in the same order.")
    numbers = {client.name: str(i + 1) for i, client in enumerate(clients)}
    labels = {topic.name: f"{numbers[topic.client.name]:>2} {topic.client.name} {topic.codec}" for topic in topics}
    width = max(map(len, labels.values()), default=0)
    print(" " * width + "".join(f"{number:>4}" for number in numbers.values()))
    for topic in topics:
        row = "".join(f"{'ok' if cells[topic.name, name] else 'FAIL':>5}"[-4:] for name in numbers)
        print(f"{labels[topic.name]:<{width}}{row}")
    print()

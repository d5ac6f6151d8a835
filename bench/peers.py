"""The servers that loads run against: the gateway and Apache Kafka."""

import contextlib
import shutil
import signal
import subprocess
import sys
import time

from kafka import Client
from machine import ROOT, WORK, MemorySampler, cpu_seconds, resident_bytes
from postgres import free_port

sys.path.append(str(ROOT / "compat-tests"))
from runner.gateway import Gateway as Process  # noqa: E402


class Server:
    """What a load needs of either: an address, and topics. Topics of one bench never share a name."""

    made = 0

    def topic(self, partitions):
        Server.made += 1
        name = f"bench-{Server.made}"
        with Client(self.bootstrap) as client:
            client.create_topic(name, partitions, self.topic_config)
        return name

    def records(self, topic, partitions):
        with Client(self.bootstrap) as client:
            return client.records(topic, partitions)


class Gateway(Server):
    """One `serve` process on a database; its memory is sampled from its start to its end."""

    topic_config = {}

    def __init__(self, bench, database, *options, url=None):
        self.bench, self.database = bench, database
        self.process = Process(bench.gateway, ["serve", "--database-url", url or bench.postgres.url(database), *options],
                               WORK / "gateway.log")
        self.bootstrap = self.process.kafka
        self.pid = self.process.process.pid

    def __enter__(self):
        self.memory = MemorySampler(self.pid)
        self.process.__enter__()
        return self

    def __exit__(self, *failure):
        self.bench.resident.append(max(self.memory.stop()))
        self.process.__exit__(*failure)

    def cpu_seconds(self):
        return cpu_seconds(self.pid)

    def resident_bytes(self):
        return resident_bytes(self.pid)

    def statements(self):
        return self.bench.postgres.statements(self.database)


class Kafka(Server):
    """Apache Kafka as its quick start runs it: one node, the defaults of its configuration and start script."""

    topic_config = {}

    def __init__(self, tools):
        self.directory = WORK / "apache-kafka"
        self.java = ["java", "-server", "-Xms1G", "-Xmx1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
                     "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
                     "-Djava.awt.headless=true", "-cp", f"{tools.server_jars}/*"]
        self.bootstrap = f"127.0.0.1:{free_port()}"

    def __enter__(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        properties, log = self.directory / "server.properties", self.directory / "server.log"
        controller = f"127.0.0.1:{free_port()}"
        # Only what one node needs; everything else is Kafka's default.
        properties.write_text(f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
listeners=PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{self.bootstrap}
controller.listener.names=CONTROLLER
log.dirs={self.directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
""", encoding="utf-8")
        with open(log, "wb") as out:
            cluster = subprocess.run([*self.java, "kafka.tools.StorageTool", "random-uuid"], check=True,
                                     capture_output=True, text=True).stdout.split()[-1]
            subprocess.run([*self.java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", properties],
                           check=True, stdout=out, stderr=out)
            self.process = subprocess.Popen([*self.java, "kafka.Kafka", properties], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, start_new_session=True)
        try:
            self._wait(log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self, log):
        deadline = time.monotonic() + 120
        while "Kafka Server started" not in log.read_text(encoding="utf-8", errors="replace"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Apache Kafka did not start, see {log}")
            time.sleep(0.2)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.directory / "data", ignore_errors=True)

    def flushing(self):
        """The same broker with topics that it flushes after every record: the durability of a commit."""
        return FlushingKafka(self)


class FlushingKafka(Server):
    topic_config = {"flush.messages": "1"}

    def __init__(self, kafka):
        self.bootstrap = kafka.bootstrap


@contextlib.contextmanager
def gateway_on_new_database(bench, name, *options, url=None):
    """A gateway on an empty schema; the database is gone afterwards."""
    with new_database(bench, name), Gateway(bench, name, *options, url=url) as gateway:
        bench.postgres.settle()
        yield gateway


@contextlib.contextmanager
def new_database(bench, name):
    bench.postgres.create(name)
    try:
        yield name
    finally:
        bench.postgres.drop(name)

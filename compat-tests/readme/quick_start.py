"""Takes the quick start out of the README and runs it; only the address and the groups are other ones."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPAT = HERE.parent
README = COMPAT.parent / "README.md"
WORK = Path(os.environ["COMPAT_WORK"]).resolve()
sys.path.insert(0, str(COMPAT))

from runner.client import Failed  # noqa: E402
from runner.gateway import dev_gateway  # noqa: E402

ADDRESS = "127.0.0.1:9092"
GROUP = "readers"
#: The Debian package of each command in the quick start.
PACKAGES = {"kcat": "kcat", "psql": "postgresql-client"}
#: What scripts/setup.sh itself calls.
NEEDED = ("bash", "cargo", "sed", "sort", "tr")
#: For one command that ends by itself, and for a consumer to print everything.
SECONDS = 180

# What the README leaves out, as every reader knows it.
JAVA = """\
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

class Main {
    public static void main(String[] args) {
%s
    }
}
"""
GO = """\
package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
%s
}
"""


def main(binary):
    folder = WORK / "readme"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failures = []
    with dev_gateway(binary, folder / "gateway.log") as (gateway, database):
        run = QuickStart(folder, gateway.kafka, database)
        checks = (run.setup, run.commands, run.python, run.java, run.go)
        for check in checks:
            try:
                check()
                print(f"{check.__name__}: as the README says", flush=True)
            except (Failed, subprocess.SubprocessError) as error:
                failures.append(check.__name__)
                print(f"failed: {check.__name__}: {error}", flush=True)
    print(f"{len(checks) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


class QuickStart:
    def __init__(self, folder, bootstrap, database):
        self.folder = folder
        self.bootstrap = bootstrap
        self.database = database

    def setup(self):
        """`make dev` installs each command of the block that follows it, on a machine that has none."""
        commands = set(re.findall(r"^\w+", commands_block(), re.MULTILINE))
        bare = self.folder / "bin"
        bare.mkdir()
        for command in NEEDED:
            (bare / command).symlink_to(shutil.which(command))
        done = subprocess.run(
            [bare / "bash", README.parent / "scripts" / "setup.sh", "dev"], cwd=README.parent, env={"PATH": str(bare)},
            stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False,
        )
        for command in sorted(commands):
            if PACKAGES.get(command) not in done.stderr.split():
                raise Failed(f"{command} is not among what it installs: {done.stderr.strip()!r}")

    def commands(self):
        """The second block of commands, in a directory that looks like the tree after `make dev`."""
        shutil.copy(README, self.folder / "README.md")
        (self.folder / ".dev" / "data").mkdir(parents=True)
        (self.folder / ".dev" / "data" / "url").write_text(self.database, encoding="utf-8")
        printed = output(["bash", "-euo", "pipefail", "-c", self.here(commands_block())], cwd=self.folder)
        lines = [line for line in README.read_text(encoding="utf-8").split("\n") if line]
        # Once by the consumer of kcat, once by its group member, which tells of its assignment in between.
        for line in set(lines):
            if printed.split("\n").count(line) != 2 * lines.count(line):
                raise Failed(f"not twice in the output: {line!r}")
        if "(5 rows)" not in printed:
            raise Failed(f"psql does not show five rows: {printed[-500:]!r}")

    def python(self):
        program = self.folder / "consumer.py"
        program.write_text(self.consumer("python"), encoding="utf-8")
        python = WORK / "confluent-kafka" / "venv" / "bin" / "python"
        self.reads_everything([python, "-u", program], repr)

    def java(self):
        source = self.folder / "Main.java"
        source.write_text(JAVA % self.consumer("java"), encoding="utf-8")
        jars = f"{WORK / 'java-newest' / 'jars'}/*"
        output(["javac", "-encoding", "UTF-8", "-d", self.folder, "-cp", jars, source])
        self.reads_everything(["java", "-cp", f"{self.folder}:{jars}", "Main"], bytes.decode)

    def go(self):
        source = self.folder / "main.go"
        source.write_text(GO % self.consumer("go"), encoding="utf-8")
        # In the folder of the client, whose go.mod pins the library.
        output(["go", "build", "-buildvcs=false", "-o", self.folder / "consumer", source], cwd=COMPAT / "franz-go")
        self.reads_everything([self.folder / "consumer"], bytes.decode)

    def consumer(self, language):
        blocks = fenced(language)
        if len(blocks) != 1:
            raise Failed(f"{len(blocks)} blocks of {language}")
        code = self.here(blocks[0])
        if code.count(GROUP) != 1:
            raise Failed(f"the group {GROUP} is named {code.count(GROUP)} times")
        # Each as if it were the first: kcat and the others have read everything as the same group.
        return code.replace(GROUP, f"{GROUP}-{language}")

    def here(self, code):
        if ADDRESS not in code:
            raise Failed(f"{ADDRESS} is not in {code}")
        return code.replace(ADDRESS, self.bootstrap)

    def reads_everything(self, command, shown):
        """The consumer prints a line of partition, offset and value for each record of the topic, and no other."""
        records = output(["kcat", "-C", "-b", self.bootstrap, "-t", "lines", "-e", "-q", "-f", "%p %o %s\n"])
        expected = []
        for record in records.splitlines():
            partition, offset, value = record.split(" ", 2)
            expected.append(f"{partition} {offset} {shown(value.encode())}")
        if not expected:
            raise Failed("the topic is empty")
        printed = first_lines(command, len(expected), self.folder / f"{Path(command[0]).name}.log")
        missing = set(expected) - set(printed)
        if missing or len(printed) != len(expected):
            raise Failed(f"{len(printed)} lines for {len(expected)} records, missing {sorted(missing)[:3]}")


def fenced(language):
    """The blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands_block():
    """The commands that follow `make dev`."""
    blocks = [block for block in fenced("sh") if "kcat -P" in block]
    if len(blocks) != 1:
        raise Failed(f"{len(blocks)} blocks with kcat -P")
    return blocks[0]


def output(command, cwd=None):
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    if done.returncode != 0:
        raise Failed(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def first_lines(command, count, log):
    """The first lines of a program that does not end by itself; fewer when it ends, or when the time is over."""
    with open(log, "wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8",
            # Java writes in the encoding of the locale.
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        lines = []
        with process.stdout as stdout:
            while len(lines) < count and (line := stdout.readline()):
                lines.append(line.rstrip("\n"))
            timer.cancel()
            process.kill()
            process.wait()
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

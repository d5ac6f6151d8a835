"""What the benchmark runs and did not write: fetched and built under .dev, once."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from machine import ROOT, WORK

COMPAT_TESTS = ROOT / "compat-tests"
COMPAT_WORK = Path(os.environ.get("COMPAT_WORK", ROOT / ".dev/compat"))


class Tools:
    """Paths of the programs. `with_java=False`: only librdkafka's."""

    def __init__(self, with_java):
        self.rdkafka_performance = build_rdkafka_performance()
        if with_java:
            self.server_jars = fetch_jars("apache-kafka")
            self.tool_jars = fetch_jars("kafka-tools")

    def java_tool(self, name, *arguments):
        """The command line of one of Kafka's tools."""
        return ["java", "-Xms256m", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                "-cp", f"{self.tool_jars}/*", f"org.apache.kafka.tools.{name}", *map(str, arguments)]


def build_rdkafka_performance():
    """librdkafka's own load generator, from the C sources in the rdkafka-sys crate that our tests link."""
    crate = _crate("rdkafka-sys")
    built = WORK / f"librdkafka-{crate['version']}"
    program = built / "examples/rdkafka_performance"
    if not program.exists():
        half = built.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(Path(crate["manifest_path"]).parent / "librdkafka", half)
        # No load here uses TLS, SASL or a codec.
        run(["./configure", "--disable-ssl", "--disable-gssapi", "--disable-curl", "--disable-zstd",
             "--disable-zlib", "--disable-lz4-ext", "--enable-static"], half)
        run(["make", "-C", "src", f"-j{os.cpu_count()}", "librdkafka.a"], half)
        run(["make", "-C", "examples", "rdkafka_performance"], half)
        half.rename(built)
    return program


def build_drivers():
    """bench/drivers, for an experiment."""
    run(["cargo", "build", "--release", "--locked", "--manifest-path", ROOT / "bench/drivers/Cargo.toml",
         "--target-dir", WORK / "drivers"], ROOT)
    return WORK / "drivers/release/drivers"


def _crate(name):
    metadata = json.loads(run(["cargo", "metadata", "--format-version=1", "--locked"], ROOT))
    return next(package for package in metadata["packages"] if package["name"] == name)


def fetch_jars(folder):
    """The directory with the jars that compat-tests/FOLDER/pom.xml pins."""
    work = COMPAT_WORK / folder
    run(["bash", "-c", 'set -e; source "$0/java/jars.sh"; fetch_jars "$0/$1" "$2"', COMPAT_TESTS, folder, work], ROOT)
    return work / "jars"


def python():
    """The interpreter of an environment with what bench/requirements.txt pins."""
    environment = WORK / "venv"
    run(["bash", "-c", 'set -e; source "$0/common/python-client.sh"; make_venv "$1" "$2"',
         COMPAT_TESTS, environment, ROOT / "bench/requirements.txt"], ROOT)
    return environment / "bin/python"


def run(command, directory):
    done = subprocess.run(list(map(str, command)), cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} …: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout

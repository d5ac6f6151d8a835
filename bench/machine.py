"""What a figure depends on: the machine, and what its processes use of it."""

import os
import platform
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = Path(os.environ.get("BENCH_WORK", ROOT / ".dev/bench"))

TICKS = os.sysconf("SC_CLK_TCK")


def facts(gateway):
    """Machine, kernel and revision; `gateway` is the binary that was measured."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    memory = int(Path("/proc/meminfo").read_text().split("MemTotal:", 1)[1].split()[0])
    return {
        "cores": os.cpu_count(),
        "processor": ", ".join(sorted(models)),
        "memory_mb": memory // 1024,
        "kernel": platform.release(),
        "revision": revision(),
        "build": Path(gateway).resolve().parent.name,
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def revision():
    """The commit, marked where files that go into the binary differ from it."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--", "crates", "migrations", "Cargo.toml", "Cargo.lock")
    return commit + (" with changes" if changed else "")


def _git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def cpu_seconds(pid):
    """Processor time of a process with all its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cpu_seconds_with_children(pid):
    """The same of a process and its children, those that have ended too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    total = sum(int(field) for field in fields[11:15]) / TICKS
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            total += cpu_seconds(child)
        except FileNotFoundError:  # It has just ended: the parent has its time when next asked.
            pass
    return total


def resident_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory: it has ended")


class MemorySampler:
    """Resident memory of a process, once a second until `stop`."""

    def __init__(self, pid):
        self.samples = []
        self._pid = pid
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            try:
                self.samples.append(resident_bytes(self._pid))
            except (FileNotFoundError, ProcessLookupError):
                return
            if self._stopped.wait(1):
                return

    def stop(self):
        self._stopped.set()
        self._thread.join()
        return self.samples

"""What a load is, and what is made of its measurements."""

import contextlib
import dataclasses
import statistics


class Load:
    """Measured for each of its lanes in turn, round after round; a lane is a server and how it is used."""

    #: As on the command line and in results.json.
    name = ""
    #: More rounds than these say nothing new: the load itself takes minutes or counts what does not vary.
    most_rounds = 100

    def lanes(self, bench):
        raise NotImplementedError

    @contextlib.contextmanager
    def prepared(self, bench):
        """What all rounds share."""
        yield None

    def measure(self, bench, lane, prepared):
        """Numbers by name, and lists of numbers for plots."""
        raise NotImplementedError

    def rows(self, found):
        """Rows of the table of figures."""
        raise NotImplementedError


class Found:
    """The measurements of one load: lane → rounds → what `measure` returned."""

    def __init__(self, lanes):
        self.lanes = lanes

    def values(self, lane, name):
        return [measured[name] for measured in self.lanes.get(lane, []) if name in measured]

    def median(self, lane, name):
        """None where the lane was not measured."""
        values = self.values(lane, name)
        return statistics.median(values) if values else None

    def ratio(self, name, lane, base, base_name=None):
        """The median of the ratios of one round each: what disturbs the machine for longer disturbs both."""
        pairs = list(zip(self.values(lane, name), self.values(base, base_name or name)))
        return statistics.median(value / other for value, other in pairs) if pairs else None


@dataclasses.dataclass
class Row:
    """One line of the table of figures. `value` and `limit` are in `unit`."""

    load: str
    figure: str
    value: float
    unit: str
    limit: float
    at_least: bool
    behind: str
    peers: str = ""

    @property
    def reached(self):
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def margin(self):
        """1 where the figure is just reached, 0.5 at half of it."""
        if self.at_least:
            return self.value / self.limit
        return self.limit / self.value if self.value else float("inf")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much each load sends, and for how long."""

    #: Of 16 MB; no more than min_wal_size.
    wal_files: int = 128
    small_records: int = 1_500_000
    large_records: int = 300_000
    java_records: int = 1_000_000
    cold_records: int = 2_000_000
    producers: int = 200
    window_seconds: int = 10
    latency_seconds: int = 15
    end_to_end_warm_up_seconds: int = 5
    end_to_end_seconds: int = 45
    end_to_end_flush_seconds: int = 5
    java_end_to_end_records: int = 1_000
    tail_seconds: int = 20
    idle_consumers: int = 1_000
    idle_groups: int = 50
    idle_seconds: int = 60
    table_rows: int = 50_000_000
    table_records: int = 500_000
    seeks: int = 400
    memory_seconds: int = 120
    held_seconds: int = 600
    partitions: tuple = (1, 10, 100, 1_000, 10_000)
    groups: tuple = (1, 10, 100, 1_000)
    growth_records: int = 300_000
    growth_idle_seconds: int = 15


#: `--quick`: to see that every load works.
QUICK = Sizes(
    wal_files=16, small_records=200_000, large_records=40_000, java_records=100_000, cold_records=200_000, producers=40,
    window_seconds=5, latency_seconds=5, end_to_end_warm_up_seconds=3, end_to_end_seconds=10, end_to_end_flush_seconds=3,
    java_end_to_end_records=200, tail_seconds=8, idle_consumers=100, idle_groups=10, idle_seconds=10,
    table_rows=1_000_000, table_records=100_000, seeks=100, memory_seconds=20, held_seconds=30,
    partitions=(1, 100), groups=(1, 20), growth_records=50_000, growth_idle_seconds=5)

#: `bench-smoke`: small enough for a debug build within a minute and a half.
SMOKE = Sizes(wal_files=16, small_records=120_000, cold_records=150_000, producers=100, window_seconds=4, tail_seconds=6)


def thousands(value):
    return "–" if value is None else f"{value:,.0f}"


def times(value):
    return "–" if value is None else f"{value:.2f} ×"


def short(value):
    """Three digits, and no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def milliseconds(value):
    return "–" if value is None else f"{value:,.0f} ms" if value >= 100 else f"{value:.2f} ms"


def listed(*parts):
    """`label value` of the parts that were measured."""
    return "; ".join(f"{label} {text}" for label, value, text in parts if value is not None)

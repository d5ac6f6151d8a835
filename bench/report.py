"""docs/bench/README.md: the figures to reach beside what was measured, from results.json."""

import loads
from load import Found, Row, short, thousands

RESIDENT_LIMIT_MB = 400

PLOTS = [
    ("throughput.png", "Records per second over time, one producer, 100 B"),
    ("latency.png", "End-to-end latency at 1,000 records a second"),
    ("table-size.png", "Throughput by the size of the message table"),
    ("growth.png", "Throughput and idle cost by partitions and groups"),
    ("memory.png", "Resident memory of the gateway under load"),
]


def rows(results):
    """All rows of the table of figures, in the order of the loads."""
    every = [row for load in loads.ALL if load.name in results for row in load.rows(Found(results[load.name]["lanes"]))]
    highest, load = max((results[load.name]["resident_mb"], load.name) for load in loads.ALL if load.name in results)
    every.append(Row(load="memory, the highest of all loads", figure=f"< {RESIDENT_LIMIT_MB} MB resident", value=highest, unit="MB",
                     limit=RESIDENT_LIMIT_MB, at_least=False, behind=f"in {load}, sampled each second"))
    return every


def table(results):
    """As Markdown."""
    lines = ["| load | figure to reach | measured | behind it | peers (gateway's ratio) | reached |", "|---|---|---|---|---|---|"]
    for row in rows(results):
        lines.append(f"| {row.load} | {row.figure} | **{short(row.value)} {row.unit}** | {row.behind} | {row.peers} | {'yes' if row.reached else '**no**'} |")
    return "\n".join(lines)


def growth_tables(results):
    """What each growth load measured, a line for each of its sizes."""
    parts = []
    for name, what in (("many-partitions", "partitions"), ("many-groups", "groups")):
        if name not in results:
            continue
        lanes = results[name]["lanes"]
        columns = [column for column in ("produced_per_s", "consumed_per_s", "spread_per_s", "cpu_percent", "statements_per_s", "resident_mb")
                   if column in next(iter(lanes.values()))[0]]
        lines = [f"| {what} | {' | '.join(COLUMNS[column] for column in columns)} |", "|---" * (len(columns) + 1) + "|"]
        for lane in sorted(lanes, key=int):
            found = Found(lanes)
            cells = [f"{found.median(lane, column):,.3g}" if column.endswith("percent") else thousands(found.median(lane, column)) for column in columns]
            lines.append(f"| {int(lane):,} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


COLUMNS = {
    "produced_per_s": "producing, records/s",
    "consumed_per_s": "reading, records/s",
    "spread_per_s": "producing to 1,000 of them at most, records/s",
    "cpu_percent": "idle, % of a core",
    "statements_per_s": "idle, statements/s",
    "resident_mb": "resident, MB",
}


def about(results):
    """Where and with what each load was measured; loads of one run share a line."""
    runs = {}
    for load in loads.ALL:
        if load.name in results:
            run = results[load.name]
            key = (run["at"], run["revision"], run["build"], run["cores"], run["processor"], run["memory_mb"], run["kernel"],
                   run["postgres"], run["rounds"], run["sizes"])
            runs.setdefault(key, []).append(load.name)
    lines = []
    for (at, revision, build, cores, processor, memory, kernel, postgres, rounds_, sizes), names in runs.items():
        lines.append(f"- {', '.join(names)}: {at}, revision {revision} ({build} build, {sizes} sizes, up to {rounds_} rounds), "
                     f"{cores} cores ({processor}), {memory:,} MB, Linux {kernel}, PostgreSQL {postgres}")
    settings = ", ".join(f"`{name} = {value or chr(39) * 2}`" for name, value in next(iter(results.values()))["settings"].items())
    return "\n".join(lines) + f"\n\nPostgreSQL's settings, for the gateway and the floor alike: {settings}."


def write(out, results):
    plots = "\n\n".join(f"![{title}]({name})" for name, title in PLOTS if (out / name).exists())
    (out / "README.md").write_text(f"""# Benchmark

Made by `make bench`; nothing here is typed. How each load is measured stands at the head of its file
in [bench/loads](../../bench/loads). Client, gateway and Postgres share the cores. A ratio is the median of the
ratios of single rounds, in which the servers took turns; an absolute number is the median of the rounds. All
rounds are in [results.json](results.json).

{table(results)}

`kafka` is Apache Kafka as it comes, `kafka-flush` the same with `flush.messages=1`: each batch is on the
disk before it is acknowledged, as with the gateway.

## Growth

{growth_tables(results)}

## Plots

{plots}

## Measured on

{about(results)}
""", encoding="utf-8")

"""Draws the plots of docs/bench from results.json: plots.py DIRECTORY. Run in the environment of requirements.txt."""

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

COLORS = {"gateway": "#1f5fbf", "floor": "#555555", "kafka": "#d9822b", "kafka-flush": "#b23b3b"}
NAMES = {"gateway": "gateway", "floor": "COPY BINARY (floor)", "kafka": "Apache Kafka", "kafka-flush": "Apache Kafka, flush.messages=1"}
#: Of 1,000 records a second.
KEPT_UP = 500
THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.0f}")


def main():
    out = Path(sys.argv[1])
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    plt.rcParams.update({
        "figure.figsize": (8, 4.2), "figure.dpi": 120, "figure.facecolor": "white", "axes.grid": True, "grid.alpha": 0.25,
        "axes.spines.top": False, "axes.spines.right": False, "font.size": 10, "axes.titlesize": 11, "legend.frameon": False,
    })
    for name, draw, needed in (("throughput", throughput, "produce-100"), ("latency", latency, "end-to-end"),
                               ("table-size", table_size, "many-rows"), ("growth", growth, "many-partitions"),
                               ("memory", memory, "memory")):
        if needed in results:
            figure = draw(results)
            figure.tight_layout()
            figure.savefig(out / f"{name}.png")
            plt.close(figure)


def throughput(results):
    """Each round of each server, twice a second."""
    figure, axes = plt.subplots()
    lanes = results["produce-100"]["lanes"]
    for lane in ("gateway", "kafka", "kafka-flush"):
        for number, measured in enumerate(lanes.get(lane, [])):
            axes.plot(*zip(*measured["course"]), color=COLORS[lane], alpha=0.8, linewidth=1.6, marker="o", markersize=3,
                      label=None if number else NAMES[lane])
    floor = statistics.median(measured["records_per_s"] for measured in lanes["floor"])
    axes.axhline(floor, color=COLORS["floor"], linestyle="--", label=NAMES["floor"])
    axes.set(xlabel="seconds", ylabel="records/s", xlim=(0, None), ylim=(0, None), title="One producer, 100 B, acks=all, 4 partitions: acknowledged records")
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.legend()
    return figure


def latency(results):
    figure, axes = plt.subplots()
    for lane, rounds in results["end-to-end"]["lanes"].items():
        rate = statistics.median(measured["sent_per_s"] for measured in rounds)
        if rate < KEPT_UP:
            # How long its queue grew is no latency.
            axes.plot([], [], color=COLORS[lane], label=f"{NAMES[lane]}: {rate:,.0f} records/s at most")
            continue
        shares = rounds[0]["percentiles"]
        medians = [statistics.median(measured["at_percentile_ms"][at] for measured in rounds) for at in range(len(shares))]
        # The distance from 100 % on a logarithmic axis, so that the tail has room.
        places = [(100 / (100 - share), value) for share, value in zip(shares, medians) if share < 100]
        axes.plot(*zip(*places), color=COLORS[lane], marker="o", markersize=3, label=NAMES[lane])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1, 2, 10, 100, 1000], ["0", "50 %", "90 %", "99 %", "99.9 %"])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set(xlabel="share of the records", ylabel="milliseconds, at most", title="From the call to produce to a group's consumer having the record, 1,000 records/s")
    axes.legend()
    return figure


def table_size(results):
    figure, axes = plt.subplots()
    stages = results["many-rows"]["extra"]["by_rows"]
    rows = [stage["rows"] / 1e6 for stage in stages]
    for name, label, color in (("produced_per_s", "producing", "#1f5fbf"), ("consumed_per_s", "reading at the tail", "#2b8a57")):
        axes.plot(rows, [stage[name] for stage in stages], marker="o", color=color, label=label)
    axes.set(xlabel="million rows in the table before", ylabel="records/s", ylim=(0, None), title="Throughput by the size of the message table, 14 time partitions")
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.legend()
    return figure


def growth(results):
    figure, axes = plt.subplots(2, 2, figsize=(8, 6.4), sharex="col")
    for column, (load, what) in enumerate((("many-partitions", "partitions"), ("many-groups", "groups"))):
        lanes = results.get(load, {}).get("lanes", {})
        sizes = sorted(lanes, key=int)
        places = [int(size) for size in sizes]
        above, below = axes[0][column], axes[1][column]
        if not sizes:
            above.set_axis_off()
            below.set_axis_off()
            continue
        for name, label, color in (("produced_per_s", "producing beside them", "#1f5fbf"), ("consumed_per_s", "reading beside them", "#2b8a57"),
                                   ("spread_per_s", "producing to 1,000 of them at most", "#8a5bb5")):
            if name in lanes[sizes[0]][0]:
                above.plot(places, [median(lanes[size], name) for size in sizes], marker="o", color=color, label=label)
        for name, label, color in (("cpu_percent", "% of a core", "#b23b3b"), ("statements_per_s", "statements/s", "#d9822b")):
            below.plot(places, [median(lanes[size], name) for size in sizes], marker="o", color=color, label=label)
        above.set(ylabel="records/s", ylim=(0, None), title=f"By {what}")
        below.set(xlabel=what, ylabel="while idle", ylim=(0, None), xscale="log")
        above.yaxis.set_major_formatter(THOUSANDS)
        above.legend()
        below.legend()
    return figure


def median(rounds, name):
    return statistics.median(measured[name] for measured in rounds)


def memory(results):
    figure, axes = plt.subplots()
    course = results["memory"]["lanes"]["gateway"][0]["course_mb"]
    axes.plot(course, color=COLORS["gateway"])
    axes.set(xlabel="seconds", ylabel="MB resident", ylim=(0, None), title="The gateway while a producer and a reader run as fast as they can")
    return figure


if __name__ == "__main__":
    main()

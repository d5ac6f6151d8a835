"""Where Kafka's group tools print something else for the gateway on purpose: a pattern for "command: -line of Kafka"
or "command: +line of the gateway", and why."""

DELIBERATE = {
    r" --(describe|delete) (.* )?--group (emptied|orphan): ": "without members and offsets; Kafka's stays for minutes",
    r" --delete-offsets --group emptied --topic orders: ": "as above",
    r" --list --state: -emptied Empty$": "as above",
}

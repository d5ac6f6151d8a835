#!/usr/bin/env bash
# A real Apache Kafka, one node in KRaft mode on loopback: the server whose answers count as right.
#
#   server.sh start DIR PORT   starts it with all its files in DIR and prints one line when it serves
#   server.sh stop DIR         stops it; its data stays in DIR
#   server.sh jars             fetches its jars and prints their folder
#
# DIR also gets pid, server.properties, format.log and server.log.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${COMPAT_WORK:-$(cd "$here/../.." && pwd)/.dev/compat}/apache-kafka
source "$here/../java/jars.sh"

java=(java -Xms64m -Xmx512m -XX:+UseSerialGC -cp "$work/jars/*"
  -Dorg.slf4j.simpleLogger.showDateTime=true
  "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS")

# Seconds that the broker gets to come up or to go down.
patience=60

usage() {
  echo "usage: server.sh start DIR PORT | stop DIR | jars" >&2
  exit 2
}

running() {
  [[ -f $1/pid ]] && kill -0 "$(<"$1/pid")" 2>/dev/null
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

write_properties() {
  local dir=$1 port=$2 controller=$3
  cat >"$dir/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$dir/data

auto.create.topics.enable=true
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0

# The tests write records whose timestamps are years old and far apart: neither deletes them, nor
# gives every batch a segment of its own.
log.retention.ms=-1
log.roll.hours=876000

# The default, 128 MiB, is taken from the heap at the start.
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=2
PROPERTIES
}

start() {
  local dir port=$2
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  if running "$dir"; then
    echo "server.sh: already running in $dir" >&2
    exit 1
  fi
  fetch_jars "$here" "$work"
  write_properties "$dir" "$port" "$(free_port)"
  [[ -f $dir/data/meta.properties ]] || format "$dir"
  rm -f "$dir/pid"
  : >"$dir/server.log"
  # A session of its own: an interrupt of the calling terminal must not stop the broker.
  setsid bash -c 'echo $$ >"$1/pid"; shift; exec "$@"' - "$dir" \
    "${java[@]}" kafka.Kafka "$dir/server.properties" >"$dir/server.log" 2>&1 </dev/null &
  wait_ready "$dir" "$port"
}

format() {
  local dir=$1 cluster
  if ! { cluster=$("${java[@]}" kafka.tools.StorageTool random-uuid) &&
    "${java[@]}" kafka.tools.StorageTool format -t "$cluster" -c "$dir/server.properties"
  } >"$dir/format.log" 2>&1; then
    cat "$dir/format.log" >&2
    exit 1
  fi
}

wait_ready() {
  local dir=$1 port=$2 tries=$((patience * 5))
  until grep -q 'Kafka Server started' "$dir/server.log"; do
    if ((tries-- == 0)) || { [[ -f $dir/pid ]] && ! running "$dir"; }; then
      tail -n 30 "$dir/server.log" >&2
      echo "server.sh: Apache Kafka did not start, see $dir/server.log" >&2
      exit 1
    fi
    sleep 0.2
  done
  echo "Apache Kafka serves 127.0.0.1:$port, pid $(<"$dir/pid")"
}

stop() {
  local dir=$1 tries=$((patience * 5))
  running "$dir" || return 0
  kill "$(<"$dir/pid")"
  while running "$dir"; do
    if ((tries-- == 0)); then
      kill -9 "$(<"$dir/pid")"
      echo "server.sh: Apache Kafka had to be killed" >&2
      break
    fi
    sleep 0.2
  done
  rm -f "$dir/pid"
}

case "${1:-}" in
  start) [[ $# -eq 3 ]] || usage; start "$2" "$3" ;;
  stop) [[ $# -eq 2 ]] || usage; stop "$2" ;;
  jars) [[ $# -eq 1 ]] || usage; fetch_jars "$here" "$work"; echo "$work/jars" ;;
  *) usage ;;
esac

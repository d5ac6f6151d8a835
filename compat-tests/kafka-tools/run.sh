#!/usr/bin/env bash
# Apache Kafka's own command line tools against a server.
#
#   run.sh build              fetches them
#   run.sh smoke BOOTSTRAP    runs each, checks what it says, ends with "N passed, N failed"
#   run.sh groups BINARY      starts Apache Kafka and the gateway with fresh data; what the group tools
#                             print for both is compared, ends with "N passed, N failed"
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${COMPAT_WORK:-$(cd "$here/../.." && pwd)/.dev/compat}/kafka-tools
kafka=$here/../apache-kafka/server.sh
reference=$work/reference
source "$here/../java/jars.sh"

# Seconds for one tool.
patience=60

# tool CLASS ARGUMENT...
tool() {
  timeout -k 5 "$patience" java -Xms32m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$work/jars/*" "org.apache.kafka.tools.$1" "${@:2}"
}

# expect PATTERN TEXT: succeeds when a line of TEXT matches the extended regular expression.
expect() {
  grep -qE -- "$1" <<<"$2" && return 0
  printf 'no line like: %s\nin: %s\n' "$1" "$2"
  return 1
}

expect_not() {
  grep -qE -- "$1" <<<"$2" || return 0
  printf 'a line like: %s\nin: %s\n' "$1" "$2"
  return 1
}

# equal WHAT EXPECTED ACTUAL
equal() {
  [[ $2 == "$3" ]] && return 0
  printf '%s: expected %s, got %s\n' "$1" "$2" "$3"
  return 1
}

# offsets TIME: the offsets of $topic at TIME, one "PARTITION:OFFSET" a line.
offsets() {
  tool GetOffsetShell --bootstrap-server "$server" --topic "$topic" --time "$1" | cut -d: -f2-
}

# total: the sum of such offsets.
total() {
  awk -F: '{ sum += $2 } END { print sum + 0 }'
}

create() {
  local said
  said=$(tool TopicCommand --bootstrap-server "$server" --create --topic "$topic" \
    --partitions 3 --replication-factor 1 --config max.message.bytes=2000000)
  expect "^Created topic $topic\.$" "$said"
}

create_again() {
  local said
  if said=$(tool TopicCommand --bootstrap-server "$server" --create --topic "$topic" 2>&1); then
    echo "a topic was made twice"
    return 1
  fi
  expect "Topic '$topic' already exists" "$said"
}

create_if_not_exists() {
  tool TopicCommand --bootstrap-server "$server" --create --if-not-exists --topic "$topic"
}

describe() {
  local said partition
  said=$(tool TopicCommand --bootstrap-server "$server" --describe --topic "$topic")
  expect "Topic: $topic.*PartitionCount: 3.*ReplicationFactor: 1.*max\.message\.bytes=2000000" "$said"
  for partition in 0 1 2; do
    expect "Partition: $partition.*Leader: [0-9]+.*Replicas: [0-9]+.*Isr: [0-9]+" "$said"
  done
}

list() {
  expect "^$topic$" "$(tool TopicCommand --bootstrap-server "$server" --list)"
}

topic_configs() {
  local said
  said=$(tool ConfigCommand --bootstrap-server "$server" --describe --topic "$topic")
  expect '^ *max\.message\.bytes=2000000 .*DYNAMIC_TOPIC_CONFIG' "$said"
  said=$(tool ConfigCommand --bootstrap-server "$server" --describe --topic "$topic" --all)
  expect '^ *cleanup\.policy=' "$said"
}

broker_configs() {
  local id said
  id=$(tool BrokerApiVersionsCommand --bootstrap-server "$server" | sed -n 's/.*(id: \([0-9]*\) .*/\1/p')
  said=$(tool ConfigCommand --bootstrap-server "$server" --describe --broker "$id" --all)
  expect "^All configs for broker $id are" "$said"
  expect '^ *num\.partitions=' "$said"
}

api_versions() {
  local said
  said=$(tool BrokerApiVersionsCommand --bootstrap-server "$server")
  expect "^$server \(id: [0-9]+ rack: " "$said"
  expect 'Produce\(0\): [0-9]+ to [0-9]+ \[usable: [0-9]+\]' "$said"
  expect 'Fetch\(1\): [0-9]+ to [0-9]+ \[usable: [0-9]+\]' "$said"
}

cluster() {
  expect '^Cluster ID: [A-Za-z0-9_-]{22}$' "$(tool ClusterTool cluster-id --bootstrap-server "$server")"
  expect "^[0-9]+ +${server%:*} +${server##*:} " \
    "$(tool ClusterTool list-endpoints --bootstrap-server "$server")"
}

lines=("one:1,two:2	key 1	value 1" "one:1	key 2	" "h:	key 3	größer, 大" "h:x	NULL	no key" "h:x	key 5	NULL")

console_produce() {
  printf '%s\n' "${lines[@]}" | tool ConsoleProducer --bootstrap-server "$server" --topic "$topic" \
    --compression-codec zstd --reader-property parse.headers=true --reader-property parse.key=true \
    --reader-property null.marker=NULL
}

get_offsets() {
  equal "earliest offsets" $'0:0\n1:0\n2:0' "$(offsets earliest)"
  equal "records" "${#lines[@]}" "$(offsets latest | total)"
  expect '^[0-2]:[0-9]+$' "$(offsets max-timestamp)"
  # From the first millisecond of 1970 on: offset 0 of every partition that has a record.
  equal "partitions with a record" "$(offsets latest | grep -vc ':0$')" "$(offsets 1 | grep -c ':0$')"
  # From the year 2100 on: nothing.
  expect_not ':[0-9]' "$(offsets 4102444800000)"
}

console_consume() {
  local partition end read=""
  while IFS=: read -r partition end; do
    ((end == 0)) && continue
    read+=$(tool consumer.ConsoleConsumer --bootstrap-server "$server" --topic "$topic" \
      --partition "$partition" --offset earliest --max-messages "$end" --timeout-ms 20000 \
      --formatter-property print.headers=true --formatter-property print.key=true \
      --formatter-property null.literal=NULL)$'\n'
  done < <(offsets latest)
  diff <(printf '%s\n' "${lines[@]}" | sort) <(printf '%s' "$read" | sort)
}

# lag GROUP: of each partition of $topic, sorted.
lag() {
  tool consumer.group.ConsumerGroupCommand --bootstrap-server "$server" --describe --group "$1" |
    awk -v topic="$topic" '$2 == topic { print $6 }' | sort -u
}

console_consume_in_group() {
  local group=$topic-console read
  read=$(tool consumer.ConsoleConsumer --bootstrap-server "$server" --topic "$topic" --group "$group" \
    --from-beginning --max-messages "${#lines[@]}" --timeout-ms 50000 \
    --formatter-property print.headers=true --formatter-property print.key=true \
    --formatter-property null.literal=NULL)
  diff <(printf '%s\n' "${lines[@]}" | sort) <(printf '%s\n' "$read" | sort)
  equal "lag" 0 "$(lag "$group")"
  # The next of the group has nothing to read but what comes.
  echo "came later" | tool ConsoleProducer --bootstrap-server "$server" --topic "$topic"
  read=$(tool consumer.ConsoleConsumer --bootstrap-server "$server" --topic "$topic" --group "$group" \
    --from-beginning --max-messages 1 --timeout-ms 50000)
  equal "what the second read" "came later" "$read"
  equal "lag" 0 "$(lag "$group")"
}

verifiable_produce() {
  local before said
  before=$(offsets latest | total)
  said=$(tool VerifiableProducer --bootstrap-server "$server" --topic "$topic" --max-messages 100)
  equal "records acknowledged" 100 "$(grep -c '"producer_send_success"' <<<"$said")"
  expect '"sent":100,"acked":100' "$said"
  equal "records" $((before + 100)) "$(offsets latest | total)"
}

producer_perf() {
  local before said
  before=$(offsets latest | total)
  said=$(tool ProducerPerformance --bootstrap-server "$server" --topic "$topic" --num-records 20000 \
    --record-size 200 --throughput -1 --command-property compression.type=lz4)
  expect '^20000 records sent, ' "$said"
  equal "records" $((before + 20000)) "$(offsets latest | total)"
}

verifiable_consume() {
  local end said
  end=$(offsets latest | total)
  said=$(tool VerifiableConsumer --bootstrap-server "$server" --topic "$topic" \
    --group-id "$topic-verifiable" --max-messages "$end")
  expect '"name":"partitions_assigned".*"partition":2' "$said"
  equal "records" "$end" "$(sed -n 's/.*"name":"records_consumed","count":\([0-9]*\).*/0:\1/p' <<<"$said" | total)"
  expect '"name":"offsets_committed".*"success":true' "$said"
  expect_not '"success":false' "$said"
  equal "lag" 0 "$(lag "$topic-verifiable")"
}

consumer_perf() {
  local end said
  end=$(offsets latest | total)
  said=$(tool ConsumerPerformance --bootstrap-server "$server" --topic "$topic" --group "$topic-perf" \
    --num-records "$end" --timeout 30000)
  equal "records" "$end" "$(tail -n 1 <<<"$said" | awk -F', ' '{ print $5 }')"
}

end_to_end_latency() {
  local before said
  before=$(offsets latest | total)
  said=$(tool EndToEndLatency "$server" "$topic" 100 all 100)
  expect '^Avg latency: [0-9.]+ ms$' "$said"
  equal "records" $((before + 100)) "$(offsets latest | total)"
}

# Without the internal topics of an application: the offsets only.
streams_reset() {
  local said
  said=$(tool StreamsResetter --bootstrap-server "$server" --application-id "$topic-verifiable" \
    --input-topics "$topic" --to-earliest)
  expect "^Topic: $topic Partition: 2 Offset: 0$" "$said"
  equal "lag" "$(offsets latest | cut -d: -f2 | sort -u)" "$(lag "$topic-verifiable")"
}

auto_create() {
  echo "made by its first record" |
    tool ConsoleProducer --bootstrap-server "$server" --topic "$topic-auto"
  expect "^$topic-auto$" "$(tool TopicCommand --bootstrap-server "$server" --list)"
}

delete() {
  local name
  for name in "$topic" "$topic-auto"; do
    tool TopicCommand --bootstrap-server "$server" --delete --topic "$name"
  done
  expect_not "^$topic" "$(tool TopicCommand --bootstrap-server "$server" --list)"
}

describe_deleted() {
  local said
  if said=$(tool TopicCommand --bootstrap-server "$server" --describe --topic "$topic" 2>&1); then
    echo "a deleted topic was described"
    return 1
  fi
  expect "Topic '$topic' does not exist as expected" "$said"
}

smoke() {
  server=$1
  topic=smoke-$$-$RANDOM
  local passed=0 failed=0 check said
  for check in create create_again create_if_not_exists describe list topic_configs broker_configs \
    api_versions cluster console_produce get_offsets console_consume console_consume_in_group \
    verifiable_produce producer_perf verifiable_consume consumer_perf end_to_end_latency streams_reset \
    auto_create delete describe_deleted; do
    # Not as a condition: that would switch `set -e` off inside.
    said=$(set -e; "$check" 2>&1)
    if [[ $? == 0 ]]; then
      passed=$((passed + 1))
      echo "ok    $check"
    else
      failed=$((failed + 1))
      echo "FAIL  $check"
      head -n 20 <<<"$said" | cut -c 1-300 | sed 's/^/      /'
    fi
  done
  echo "$passed passed, $failed failed"
  ((failed == 0))
}

build() {
  local source=$here/src/GroupCommands.java
  fetch_jars "$here" "$work" || return
  if [[ ! $work/classes/GroupCommands.class -nt $source ]] ||
    [[ ! $work/classes/GroupCommands.class -nt $work/pom.fetched ]]; then
    javac --release 17 -Xlint:all -Werror -d "$work/classes" -cp "$work/jars/*" "$source"
  fi
}

groups() {
  local port
  build || return
  "$kafka" stop "$reference" && rm -rf "$reference" || return
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  trap '"$kafka" stop "$reference"' EXIT
  "$kafka" start "$reference" "$port" || return
  PYTHONPATH=$here/.. PYTHONDONTWRITEBYTECODE=1 python3 "$here/groups.py" "127.0.0.1:$port" "$1" "$work"
}

case "${1:-}" in
  build) build ;;
  groups) [[ $# -eq 2 ]] && groups "$2" ;;
  smoke) [[ $# -eq 2 ]] && smoke "$2" ;;
  *) echo "usage: run.sh build | smoke BOOTSTRAP | groups BINARY" >&2; exit 2 ;;
esac

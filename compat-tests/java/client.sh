#!/usr/bin/env bash
# The verbs of every folder that runs RecordClient and GroupMember: client.sh FOLDER VERB [ARGUMENT...]
# FOLDER/pom.xml pins the kafka-clients release.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(cd "$1" && pwd)
verb=${2:-}
work=${COMPAT_WORK:-$(cd "$here/../.." && pwd)/.dev/compat}/${folder##*/}
source "$here/jars.sh"

build() {
  fetch_jars "$folder" "$work"
  # The jars matter too: a release with another API has to be compiled against.
  local source
  for source in "$here"/src/*.java "$work/pom.fetched"; do
    [[ $work/compiled -nt $source ]] && continue
    rm -rf "$work/classes" "$work/compiled"
    javac --release 17 -Xlint:all -Werror -d "$work/classes" -cp "$work/jars/*" "$here"/src/*.java
    touch "$work/compiled"
    break
  done
}

run() {
  exec java -Xms32m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    -cp "$work/classes:$work/jars/*" "$@"
}

capabilities() {
  cat <<'JSON'
{"codecs": ["none", "gzip", "snappy", "lz4", "zstd"], "binary": true, "headers": true, "null_header_values": true, "duplicate_headers": true, "null_key": true, "empty_key": true, "null_value": true, "empty_value": true, "timestamps": true, "max_value_bytes": 921600, "group": {"assignors": ["range", "roundrobin", "cooperative-sticky"], "static": true, "rebalance_events": true}}
JSON
}

case "$verb" in
  build) build ;;
  capabilities) capabilities ;;
  group) run GroupMember "${@:3}" ;;
  *) run RecordClient "${@:2}" ;;
esac

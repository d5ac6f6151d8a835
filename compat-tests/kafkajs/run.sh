#!/usr/bin/env bash
# kafkajs; ../README.md says what the verbs do.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${COMPAT_WORK:-$(cd "$here/../.." && pwd)/.dev/compat}/kafkajs

build() {
  mkdir -p "$work"
  # Node looks for packages beside the script that imports them.
  cp "$here"/*.js "$here"/package*.json "$work/"
  cmp -s "$here/package-lock.json" "$work/installed-lock.json" && return 0
  rm -f "$work/installed-lock.json"
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  cp "$here/package-lock.json" "$work/installed-lock.json"
}

# kafkajs keeps headers as an object: names in the order of their first use, the values of one name
# together. It throws on a null header value that it should send. In groups it has no cooperative
# protocol and no group.instance.id.
capabilities() {
  cat <<'JSON'
{"codecs": ["none", "gzip", "snappy", "lz4", "zstd"], "binary": true, "headers": true, "null_header_values": true, "duplicate_headers": false, "null_key": true, "empty_key": true, "null_value": true, "empty_value": true, "timestamps": true, "max_value_bytes": 921600, "produce": {"null_header_values": false}, "group": {"assignors": ["range", "roundrobin"], "static": false, "rebalance_events": true}}
JSON
}

case "${1:-}" in
  build) build ;;
  capabilities) capabilities ;;
  *) exec node "$work/record-client.js" "$@" ;;
esac

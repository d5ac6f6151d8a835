#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${COMPAT_WORK:-$(cd "$here/../.." && pwd)/.dev/compat}/rust-rdkafka
export CARGO_TARGET_DIR=$work/target

if [[ ${1:-} == build ]]; then
  mkdir -p "$work"
  exec cargo build --quiet --locked --manifest-path "$here/Cargo.toml"
fi
exec "$CARGO_TARGET_DIR/debug/compat-rust-rdkafka" "$@"

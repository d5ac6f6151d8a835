#!/usr/bin/env bash
# Each fuzz target for a while, coverage-guided, with the stable toolchain.
#
#   run.sh SECONDS       each target for so long; the findings that widen the coverage stay in corpus/<target>,
#                        a finding that ended the target goes to artifacts/<target>, and the exit status is 1
#   run.sh TARGET FILE   one target with one finding
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The flags of `cargo fuzz run --sanitizer none`: only the sanitizers need a nightly compiler. Build scripts are
# not linked with libFuzzer, and a build for a named target keeps the flags from them.
host=$(rustc --print host-tuple)
export RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 -Cpasses=sancov-module
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
  -Cllvm-args=-sanitizer-coverage-stack-depth"
built=${CARGO_TARGET_DIR:-target}/$host/release

build() {
  cargo build -q --release --target "$host"
}

# fuzz SECONDS TARGET SEEDS [OPTION...]
fuzz() {
  local target=$2 seeds=$3 log=artifacts/$2.log
  mkdir -p "corpus/$target" "artifacts/$target"
  # libFuzzer tells every widening of the coverage: some megabytes an hour.
  if ! "$built/$target" "corpus/$target" "$seeds" -max_total_time="$1" -artifact_prefix="artifacts/$target/" \
    -rss_limit_mb=512 -timeout=10 -print_final_stats=1 "${@:4}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    return 1
  fi
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $1 s"
}

case $# in
  1)
    build
    fuzz "$1" request_decode ../testdata/requests
    fuzz "$1" batch_view ../testdata/batches -max_len=65536
    ;;
  2) build && "$built/$1" "$2" ;;
  *) echo "usage: run.sh SECONDS | TARGET FILE" >&2; exit 2 ;;
esac

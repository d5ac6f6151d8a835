#!/usr/bin/env bash
# Runs the tests of tests.allow, from the package kgo of the pinned franz-go, against a server.
#
#   suite.sh WORK BOOTSTRAP     WORK gets the test program and suite.log
#
# Ends with "N passed, N failed". A test that skips itself counts as failed, and so does a test of kgo
# that neither tests.allow nor FINDINGS.md names: a newer franz-go may bring some. TEST/SUBTEST in
# tests.allow is a part of TEST that must not be skipped either.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1 bootstrap=$2
program=$work/kgo.test log=$work/suite.log

(cd "$here" && go test -c -buildvcs=false -o "$program" github.com/twmb/franz-go/pkg/kgo)

mapfile -t known < <("$program" -test.list '^Test')
mapfile -t allowed < <(grep -v '^#' "$here/tests.allow")
failed=()

for test in "${known[@]}"; do
  grep -qxF "$test" "$here/tests.allow" || grep -qwF "$test" "$here/FINDINGS.md" ||
    failed+=("$test: in neither tests.allow nor FINDINGS.md")
done

# The server may be a single node, hence the replication factor. TestGroupETL sends so many records through
# chains of groups; 500,000, its default, take minutes.
pattern=$(printf '%s\n' "${allowed[@]}" | grep -v / | paste -sd '|')
cd "$work"
KGO_SEEDS=$bootstrap KGO_TEST_RF=1 KGO_TEST_RECORDS=20000 KGO_LOG_LEVEL=none \
  "$program" -test.v -test.timeout 10m -test.run "^($pattern)\$" >"$log" 2>&1 || true

passed=0
for test in "${allowed[@]}"; do
  if grep -q "^ *--- PASS: $test (" "$log"; then
    passed=$((passed + 1))
  else
    failed+=("$test: $(grep -o "^ *--- [A-Z]*: $test (.*" "$log" || echo "no result"), see $log")
  fi
done

for failure in "${failed[@]}"; do
  echo "failed: $failure"
done
echo "$passed passed, ${#failed[@]} failed"
((${#failed[@]} == 0))

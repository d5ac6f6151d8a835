# Sourced by the scripts of every folder that runs Java code from Maven jars.
#
# fetch_jars FOLDER OUT: copies the run-time jars that FOLDER/pom.xml pins into OUT/jars.
# Does nothing, and starts no Maven, when OUT already holds the jars of this very pom.xml.

fetch_jars() {
  local pom=$1/pom.xml out=$2
  cmp -s "$pom" "$out/pom.fetched" && return 0
  local program
  for program in java mvn; do
    command -v "$program" >/dev/null && continue
    echo "missing: $program (Debian, Ubuntu: default-jdk-headless, maven)" >&2
    return 1
  done
  mkdir -p "$out"
  rm -rf "$out/jars" "$out/pom.fetched"
  # Maven's own output is of use only when it fails.
  if ! mvn -B -f "$pom" dependency:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$out/jars" >"$out/maven.log" 2>&1; then
    grep -E '^\[ERROR\]' "$out/maven.log" | head -n 20 >&2
    return 1
  fi
  cp "$pom" "$out/pom.fetched"
}

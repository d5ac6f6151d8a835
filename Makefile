# Everything a newcomer needs; each target installs what it is missing (scripts/setup.sh).

GATEWAY := target/debug/pgqueue-gateway
# The clients that need no more than Rust, C and Python.
CLIENTS := rust-rdkafka,confluent-kafka,kafka-python,kafka-python-2.0.2,aiokafka,kcat
# The table of request fields, from the jars of the Apache Kafka whose answers count as right.
GENERATE := scripts/generate_shapes.py "$$(compat-tests/apache-kafka/server.sh jars)"/kafka-clients-*.jar

.PHONY: dev lint test test-rust test-runner test-lint test-clients test-datahub
.PHONY: compat compat-clients compat-differential generate soak bench bench-smoke profile setup-lint setup-test setup-compat

dev: ## a private Postgres and the gateway on 127.0.0.1:9092
	@scripts/setup.sh dev
	cargo build --release -p cli
	@exec target/release/pgqueue-gateway dev

test: test-rust test-runner test-lint test-clients test-datahub ## what Rust, C, Python and PostgreSQL can run

test-rust: setup-test
	cargo test --workspace --no-fail-fast

test-runner: setup-test ## the runner of the matrix itself
	cd compat-tests && python3 -m unittest runner.test_runner

test-lint: ## the checks of `make lint`
	cd scripts/lint && python3 -m unittest

test-clients: setup-test $(GATEWAY)
	compat-tests/run.py --gateway $(GATEWAY) --clients $(CLIENTS) --quick

test-datahub: setup-test $(GATEWAY) ## a real file from kcat to pgQueue; pgQueue and Kafka on each kind of schema
	compat-tests/datahub/run.sh all $(GATEWAY)

compat: setup-compat $(GATEWAY) ## the clients of all languages, Kafka's tools, franz-go's own tests, Kafka's answers
	compat-tests/run.py --gateway $(GATEWAY) --quick --suites
	compat-tests/differential/run.sh test $(GATEWAY)
	compat-tests/readme/run.sh test $(GATEWAY)
	compat-tests/kafka-tools/run.sh groups $(GATEWAY)
	$(GENERATE) --check

generate: setup-compat ## what is generated and committed: the table of request fields
	$(GENERATE)

soak: setup-compat $(GATEWAY) ## the long loops
	CHAOS_ROUNDS=500 cargo test -p cli --test it -- chaos cut_off --include-ignored --nocapture --test-threads=1
	compat-tests/run.py --gateway $(GATEWAY) --suites
	GROUP_TURNS=40 compat-tests/datahub/run.sh all $(GATEWAY)
	crates/wire/fuzz/run.sh 600

bench: ## each load against the gateway, Postgres alone and Apache Kafka; writes docs/bench
	@scripts/setup.sh bench
	cargo build --release -p cli
	bench/run.py $(BENCH)

bench-smoke: setup-test $(GATEWAY) ## a few ratios of it within a minute and a half, in a debug build
	bench/smoke.py --gateway $(GATEWAY)

# Frame pointers, so that perf can walk the stack for little; a directory of its own, so that the
# release build is not made anew.
profile: ## flame graphs of the gateway while producing and consuming, and Postgres' share
	@scripts/setup.sh profile
	RUSTFLAGS="-C force-frame-pointers=yes" cargo build --profile profiling -p cli --target-dir target/frame-pointers
	bench/flame.py --gateway target/frame-pointers/profiling/pgqueue-gateway

# The crates that have got rid of theirs.
WITHOUT_CYCLES := cli gateway groups local-postgres testkit wire

lint: setup-lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo deny check licenses bans sources
	scripts/lint/citations.py
	scripts/lint/cycles.py $(WITHOUT_CYCLES)

# Without optimisation it is built in half the time, and checks in three seconds all the same.
setup-lint:
	@scripts/setup.sh lint
	@cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked --debug --no-default-features

setup-test:
	@scripts/setup.sh test

setup-compat:
	@scripts/setup.sh compat

# As `cargo test` builds it, with the features that it gives the packages: nothing is built twice.
.PHONY: $(GATEWAY)
$(GATEWAY):
	cargo test --workspace --no-run

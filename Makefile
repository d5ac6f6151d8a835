# Everything a newcomer needs; each target installs what it is missing (scripts/setup.sh).

GATEWAY := target/release/pgqueue-gateway

.PHONY: dev test compat soak lint

dev: ## a private Postgres and the gateway on 127.0.0.1:9092
	@scripts/setup.sh dev
	cargo build --release -p cli
	@exec $(GATEWAY) dev

test: ## what Rust, C, Python and PostgreSQL can run
	@scripts/setup.sh test
	cargo test --workspace
	cargo build --release -p cli
	compat-tests/run.py --gateway $(GATEWAY) --group local
	compat-tests/datahub/run.sh all $(GATEWAY)

compat: ## the clients of all languages
	@scripts/setup.sh compat
	cargo build --release -p cli
	compat-tests/run.py --gateway $(GATEWAY)

soak: ## the long loops
	@scripts/setup.sh test
	CHAOS_ROUNDS=500 cargo test -p cli --test it chaos -- --nocapture

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

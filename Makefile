# The commands of this repository. `make demo` and `make test` are all that most people need.
#
#   make demo         build the program and prove a real circuit on the best device there is
#   make test         everything that needs no GPU; one tier: cargo xtask test TIER
#   make gpu-bundle   one archive with the tests for a machine with a GPU (tiers gpu and sanitizer)
#   make dist         one archive with the program, for every Linux on x86-64 with glibc 2.28 or later
#   make mutants      try edits to what differs from main (BASE=...) that tests must notice
#   make fmt          format the Rust sources
#   make lint         formatting, clippy, spelling, licences and the rules of the house

.PHONY: demo test gpu-bundle dist mutants fmt lint tools

demo:
	@sh scripts/demo.sh

test:
	@bash scripts/test.sh

gpu-bundle: tools
	sh scripts/gpu-bundle.sh

dist: tools
	sh scripts/dist.sh

mutants:
	@bash scripts/mutants.sh $(BASE)

fmt:
	cargo fmt --all

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	cargo xtask deny
	cargo xtask bindgen --check
	sh scripts/proto.sh --check
	sh scripts/style.sh

tools:
	sh scripts/install-nvcc.sh

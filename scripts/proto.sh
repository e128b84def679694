#!/bin/sh
# Writes what the service's description of gRPC is compiled to, crates/service/src/proto; `--check` only compares it with what is there;
# `--tools` only installs protoc and a client of gRPC into .build/grpc-venv, which tests use, too. Needs Python 3.10 or later with venv,
# and PyPI at the first run.
set -eu
cd "$(dirname "$0")/.."
venv=.build/grpc-venv
case $* in
"" | --check | --tools) ;;
*) echo "usage: scripts/proto.sh [--check | --tools]" >&2; exit 2 ;;
esac

if ! cmp -s scripts/proto-tools.txt "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r scripts/proto-tools.txt
    cp scripts/proto-tools.txt "$venv/installed"
fi
[ "$*" != --tools ] || exit 0

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
# The first is what reflection answers, the second has the comments, too.
for option in "--descriptor_set_out=$made/tandem.v1.bin" "--include_source_info --descriptor_set_out=$made/with-comments"; do
    # Unquoted: these are two arguments.
    "$venv/bin/python" -m grpc_tools.protoc -I crates/service/proto $option crates/service/proto/tandem/v1/prover.proto
done
cargo run --quiet --locked --manifest-path xtask/proto/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/proto" -- \
    "$made/with-comments" "$made"
rm "$made/with-comments"
rustfmt --edition 2021 --config-path . "$made/tandem.v1.rs"

kept=crates/service/src/proto
if [ "$*" = --check ]; then
    for file in tandem.v1.rs tandem.v1.bin; do
        cmp "$made/$file" "$kept/$file" || { echo "$kept/$file is not what its description says: run scripts/proto.sh" >&2; exit 1; }
    done
else
    mkdir -p "$kept"
    cp "$made/tandem.v1.rs" "$made/tandem.v1.bin" "$kept"
fi

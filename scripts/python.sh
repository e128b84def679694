#!/bin/sh
# Builds the package in integrations/python as `pip install ./integrations/python` does, but without optimisation, checks its types and runs
# its tests on pretend PEs. `scripts/python.sh wheel [FOLDER]` makes the optimised wheel instead, .build/wheels unless said. Needs
# Python 3.11 to 3.13 with venv, and PyPI at the first run.
set -eu
cd "$(dirname "$0")/.."
venv=$PWD/.build/python-venv
package=integrations/python
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

if ! cmp -s "$package/requirements.txt" "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$package/requirements.txt"
    cp "$package/requirements.txt" "$venv/installed"
fi
PATH=$venv/bin:$PATH

case ${1-} in
wheel)
    maturin build --locked --release --manifest-path "$package/Cargo.toml" --interpreter python --out "${2:-.build/wheels}"
    exit ;;
"") ;;
*) echo "usage: scripts/python.sh [wheel [FOLDER]]" >&2; exit 2 ;;
esac

# The tests run without a GPU: kernels that nothing runs are not compiled.
export TANDEM_NVCC=none TANDEM_REQUIRE_NVCC=0
(cd "$package" && cargo fmt --check && cargo clippy --quiet --locked -- -D warnings)
pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall \
    --config-settings "build-args=--profile dev --locked" "./$package"
export PYTHONDONTWRITEBYTECODE=1
(cd "$package" && mypy --cache-dir ../../.build/mypy)
# The types are those of the library itself.
(cd "$venv" && python -m mypy.stubtest --mypy-config-file "$OLDPWD/$package/pyproject.toml" --ignore-disjoint-bases \
    --allowlist "$OLDPWD/$package/tests/stubtest.txt" tandem._fabric)
(cd "$package" && python -m pytest --quiet -p no:cacheprovider tests)

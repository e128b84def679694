#!/bin/sh
# Makes .build/dist/tandem-prover-VERSION-x86_64-linux.tar.gz: the program for every Linux on x86-64 with glibc 2.28 or later, that is
# RHEL 8, Debian 10, Ubuntu 18.10 and what came after. Needs what `make demo` needs, PyPI at the first run, and binutils.
#
# Zig's linker has the symbol versions of each glibc, so the program is linked against 2.28 on whatever machine this runs.
set -eu
cd "$(dirname "$0")/.."
glibc=2.28
target=x86_64-unknown-linux-gnu
venv=.build/dist-venv

if ! cmp -s scripts/dist-tools.txt "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r scripts/dist-tools.txt
    cp scripts/dist-tools.txt "$venv/installed"
fi

work=.build/dist
rm -rf "$work"
mkdir -p "$work"
# The launchers' objects come from g++, so they are linked with its library and not with Zig's. That library asks for a flag that glibc
# has from 2.32 on. Here it says that there are several threads, always.
echo 'char __libc_single_threaded;' | gcc -x c -c -O2 -fPIC - -o "$work/threads.o"
library=$(g++ -print-file-name=libstdc++.a)
case $library in
/*) ;;
*) echo "dist: g++ has no libstdc++.a (RHEL, Fedora: dnf install libstdc++-static)" >&2; exit 1 ;;
esac

PATH="$PWD/$venv/bin:$PATH" TANDEM_REQUIRE_NVCC=1 "$venv/bin/cargo-zigbuild" rustc --release --locked -p tandem-prover --bin tandem \
    --target "$target.$glibc" -- -C link-arg="$library" -C link-arg="$PWD/$work/threads.o"
built=${CARGO_TARGET_DIR:-target}/$target/release/tandem
sh scripts/oldest-glibc.sh "$built" "$glibc"

version=$("$built" --version | sed -n 's/^tandem \([^ ]*\).*/\1/p')
name=tandem-prover-$version-x86_64-linux
mkdir "$work/$name"
strip -o "$work/$name/tandem" "$built"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$work/$name/"
for shell in bash zsh fish; do
    "$built" completions "$shell" >"$work/$name/tandem.$shell"
done
(cd "$work" && tar --owner=0 --group=0 --sort=name -czf "$name.tar.gz" "$name" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$work/$name.tar.gz: glibc $glibc, $("$built" --version)"

#!/bin/sh
# Sees to it that there is an S3-compatible store for the tests of the service: versitygw (Apache-2.0), built by Go into .build of this
# checkout. The tests start it on folders of their own. Running it again does nothing; without Go it says so, and the tests are skipped.
set -eu
cd "$(dirname "$0")/.."

version=v1.8.0
folder=.build/versitygw
if [ -x "$folder/versitygw" ] && [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then
    echo "versitygw $version is there" >&2
    exit 0
fi
if ! command -v go >/dev/null; then
    echo "install-s3: there is no Go to build a store with (Debian: sudo apt-get install golang): its tests are skipped" >&2
    exit 0
fi
mkdir -p "$folder"
GOBIN="$PWD/$folder" go install "github.com/versity/versitygw/cmd/versitygw@$version"
echo "$version" >"$folder/version"

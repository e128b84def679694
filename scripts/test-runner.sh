#!/bin/sh
# Runs a test program of cargo's. The tests of the service wait more than they compute, so twice as many of them run at a time.
case $(basename "$1") in service-*) RUST_TEST_THREADS=$((2 * $(nproc))) && export RUST_TEST_THREADS ;; esac
exec "$@"

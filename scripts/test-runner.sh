#!/bin/sh
# Runs a test program of cargo's: test-runner.sh [but NAME] PROGRAM ARGUMENT...; but NAME, which another step of scripts/test.sh runs.
# The tests of the service wait more than they compute, so twice as many of them run at a time.
if [ "$1" = but ]; then
    case $(basename "$3") in "$2"-*) exit 0 ;; esac
    shift 2
fi
case $(basename "$1") in service-*) RUST_TEST_THREADS=$((2 * $(nproc))) && export RUST_TEST_THREADS ;; esac
exec "$@"

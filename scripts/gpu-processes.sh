#!/bin/sh
# Runs the fabric's tests of several processes on GPUs, each PE on its own as far as there are so many, under an MPS server of its own:
# `sh gpu-processes.sh PROGRAM`, where PROGRAM is the test program `processes`, built with nvcc. Logs go to $OUT (default: out). NO_MPS=1 does
# without the server: then the processes take turns. The exit status is 0 if all passed.
set -u
program=$1
out=${OUT:-out}
mkdir -p "$out"
server=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY="$server" CUDA_MPS_LOG_DIRECTORY="$server/log"
mkdir -p "$CUDA_MPS_LOG_DIRECTORY"
export TANDEM_TEST_DEVICE=cuda TANDEM_REQUIRE_GPU=1
failed=0

# serve starts a server, after the one before: a client that is killed may take its server with it.
serve() {
    [ -z "${NO_MPS:-}" ] || return 0
    echo quit | nvidia-cuda-mps-control 2>/dev/null
    nvidia-cuda-mps-control -d
}

# part <name> <test>
part() {
    serve
    begun=$(date +%s)
    timeout 170 "$program" --test-threads=1 --nocapture "$2" >"$out/$1.log" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=1
    echo "part $1: status $status, $(($(date +%s) - begun)) s"
    tail -n 40 "$out/$1.log"
}

part suite suite::one_to_eight
part heap suite::heaps
part collectives suite::collectives
part examples the_examples_run
for drill in to_leave processes_that_differ a_panic a_killed a_process_that_stops; do
    part "$drill" "drills::$drill"
done
[ -n "${NO_MPS:-}" ] || echo quit | nvidia-cuda-mps-control
rm -r "$server"
exit $failed

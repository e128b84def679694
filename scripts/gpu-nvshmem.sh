#!/bin/sh
# Runs the fabric's tests of GPUs of several nodes, which NVSHMEM joins: `sh gpu-nvshmem.sh PROGRAM`, where PROGRAM is the test program `processes`,
# built with nvcc. Each process stands for a node and has a GPU of its own, of this machine's two to four; where there is one, two share it under
# an MPS server of their own. NVSHMEM is the library TANDEM_NVSHMEM, or that of the wheel nvidia-nvshmem-cu13 or -cu12. Logs go to $OUT (default:
# out). The exit status is 0 if all passed.
set -u
program=$1
out=${OUT:-out}
mkdir -p "$out"
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export TANDEM_NVSHMEM="${TANDEM_NVSHMEM:-$packages/nvidia/nvshmem/lib/libnvshmem_host.so.3}"
[ -e "$TANDEM_NVSHMEM" ] || { echo "gpu-nvshmem: no $TANDEM_NVSHMEM: pip install nvidia-nvshmem-cu13, or TANDEM_NVSHMEM=FILE" >&2; exit 2; }
# All are on one host: no network, and never NVLink's multicast, of which a program that is killed may leave something in the machine.
export NVSHMEM_REMOTE_TRANSPORT="${NVSHMEM_REMOTE_TRANSPORT:-none}" NVSHMEM_DISABLE_NVLS=1 NVSHMEM_DEBUG="${NVSHMEM_DEBUG:-WARN}"
export TANDEM_TEST_DEVICE=cuda TANDEM_TEST_NODES=1 TANDEM_REQUIRE_GPU=1
shares=
if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
    shares=$(mktemp -d)
    export CUDA_MPS_PIPE_DIRECTORY="$shares" CUDA_MPS_LOG_DIRECTORY="$shares/log" CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50
    mkdir -p "$CUDA_MPS_LOG_DIRECTORY"
fi
failed=0

# serve starts a server, after the one before: a client that is killed may take its server with it.
serve() {
    [ -n "$shares" ] || return 0
    echo quit | nvidia-cuda-mps-control 2>/dev/null
    nvidia-cuda-mps-control -d
}

# part <name> <test>
part() {
    serve
    begun=$(date +%s)
    timeout "${SECONDS_EACH:-170}" "$program" --test-threads=1 --nocapture "gpus::$2" >"$out/$1.log" 2>&1
    status=$?
    # A part that ran no test is none.
    grep -q '^test result: ok. [1-9]' "$out/$1.log" || [ $status -ne 0 ] || status=3
    [ $status -eq 0 ] || failed=1
    echo "part $1: status $status, $(($(date +%s) - begun)) s"
    tail -n 40 "$out/$1.log"
}

part differ those_that_differ
part steps steps_and_sizes
part order order_between_nodes
part host the_host_and_arrays
part refusals refusals_in_words
part node two_processes_on_a_node
part in-a-row teams_in_a_row
part killed one_that_is_killed
part stops one_that_stops
part go-on parts_go_on
if [ -n "$shares" ]; then
    echo quit | nvidia-cuda-mps-control
    rm -r "$shares"
fi
exit $failed

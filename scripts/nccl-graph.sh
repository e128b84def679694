#!/bin/sh
# Lets a real NCCL read our graph files, of this machine's GPUs: `sh nccl-graph.sh`, beside the program in the GPU bundle. NCCL is the library NCCL, or
# that of the wheel nvidia-nccl-cu13. It looks for NCCL's own words: that it took all channels of each file, and that it stumbled over nothing. What NCCL
# says goes to $OUT (default: out). Needs two GPUs with NVLinks between them, and takes no more: behind a switch plans for several branch, which NCCL's
# graphs cannot say.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-out}
mkdir -p "$OUT"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0,1}"
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
NCCL=${NCCL:-$packages/nvidia/nccl/lib/libnccl.so.2}
[ -e "$NCCL" ] || { echo "nccl-graph: no $NCCL: pip install nvidia-nccl-cu13, or NCCL=FILE" >&2; exit 2; }
"$here/tandem" topo --json >"$OUT/box.json"

# read_file <plan> <bench> <algorithm> <number of the graph>
read_file() {
    file=$OUT/graph-$1.xml log=$OUT/nccl-$1.log
    "$here/tandem" plan "$1" --gpus all --from "$OUT/box.json" --nccl-graph >"$file"
    channels=$(sed -n "s/.*<graph id=\"$4\" .* nchannels=\"\([0-9]*\)\".*/\1/p" "$file")
    [ -n "$channels" ] || { echo "nccl-graph: $file has no graph $4" >&2; exit 1; }
    NCCL_GRAPH_FILE=$file NCCL_ALGO=$3 NCCL_NVLS_ENABLE=0 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV NCCL_DEBUG_FILE=$log \
        "$here/tandem" -q --device cuda bench "$2" -b 1M -e 64M -f 8 --nccl "$NCCL" --json "$OUT/nccl-graph.jsonl"
    for words in "NCCL_GRAPH_FILE set by environment to $file" "Search $4 : $channels channels loaded from XML graph"; do
        grep -qF "$words" "$log" || { echo "nccl-graph: $log does not say: $words" >&2; exit 1; }
    done
    if grep -E 'XML (Parse|Mismatch|Import|Graph has wrong)|Could not open XML|Attribute .* not found|Ignoring (element|extra)|not found in graph' "$log"; then
        echo "nccl-graph: NCCL stumbled over $file" >&2
        exit 1
    fi
    echo "nccl-graph: NCCL took the $channels channels of $file"
}
read_file all-gather allgather Ring 0
read_file broadcast broadcast Ring 0
read_file all-reduce allreduce Tree 1

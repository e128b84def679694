#!/bin/sh
# The fabric and its peers on two GPUs, in one run of about two minutes: `sh bench/fabric.sh [FOLDER]` with the programs in FOLDER (the GPU
# bundle). NCCL and NVSHMEM are those that PyTorch's wheels brought, or NCCL=libnccl.so.2 and NVSHMEM_LIB=folder. Rows go to $OUT/fabric.jsonl,
# drawings to $OUT/*.svg; the tables come last. With LARGE=1 copies of 8 GiB too, which take minutes: most of it is the data and its checks.
set -u
here=${1:-.build/gpu-bundle}
out=${OUT:-out}
mkdir -p "$out"
rows=$out/fabric.jsonl
: >"$rows"
# Never NVLink multicast: a program that is killed while it uses it can leave the GPUs of a machine unusable.
export NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
NCCL=${NCCL:-$packages/nccl/lib/libnccl.so.2}
NVSHMEM_LIB=${NVSHMEM_LIB:-$packages/nvshmem/lib}
tandem=$here/tandem
failures=0

# bench <what> <options>
bench() {
    name=$1
    set -- "$@" --plot "$out/$name.svg"
    timeout "${limit:-60}" "$tandem" -q --device cuda bench "$@" --json "$rows" >"$out/fabric-$name.txt" 2>"$out/fabric-$name.log" ||
        { echo "bench $name failed:"; tail -3 "$out/fabric-$name.log"; failures=$((failures + 1)); }
}

timeout 30 "$tandem" topo --measure >"$out/topo.txt" 2>&1 || { echo "topo failed"; failures=$((failures + 1)); }
cat "$out/topo.txt"
nccl=
[ -e "$NCCL" ] && nccl="--nccl $NCCL"
# shellcheck disable=SC2086 # two words on purpose
{
    bench p2p -b 8 -e 8 $nccl
    if [ "${LARGE:-0}" = 1 ]; then
        limit=240
        bench p2p -b 8G -e 8G $nccl
        for what in upload download; do bench $what -b 8G -e 8G; done
        limit=60
    fi
    for what in p2p broadcast allreduce alltoall; do bench $what -b 4K -e 1G -f 4 $nccl; done
}
bench pingpong
bench inside
for what in put get; do bench $what -b 4K -e 16M -f 4; done
for what in upload download; do bench $what -b 16M -e 1G -f 4; done
if [ -x "$here/peers/nvshmem" ]; then
    LD_LIBRARY_PATH="$NVSHMEM_LIB" timeout 60 "$here/peers/nvshmem" >>"$rows" 2>"$out/nvshmem.log" ||
        { echo "nvshmem failed:"; tail -3 "$out/nvshmem.log"; failures=$((failures + 1)); }
fi
timeout 60 "$tandem" -q --device cuda bench reduce --log-n 29 --data lanes,pinned --json "$rows" >"$out/reduce.txt" 2>"$out/reduce.log" ||
    { echo "bench reduce failed:"; tail -3 "$out/reduce.log"; failures=$((failures + 1)); }
# shellcheck disable=SC2086
for what in "reduce --collective" allgather reducescatter; do bench $what -b 4K -e 1G -f 4 $nccl; done
python3 "$here/fabric.py" "$rows" || failures=$((failures + 1))
echo "$failures failed"
[ "$failures" -eq 0 ]

"""NCCL's calls on the GPUs of this machine, with the library before NCCL and without it: results against NumPy, and times of queued calls.

    python3 gpu.py LIBRARY [GPUS]

LIBRARY is libtandem_nccl.so. NCCL is that of the wheel beside this Python, or NCCL=FILE. Needs CuPy. Runs itself once for each way.
"""
import ctypes
import json
import os
import subprocess
import sys
import sysconfig
import time

SIZES = [8, 1 << 10, 4 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 16 << 20]
INT32, SUM = 2, 0


def work(library, count):
    import cupy
    import numpy

    nccl = ctypes.CDLL(library)

    def call(name, *arguments):
        status = getattr(nccl, name)(*arguments)
        if status:
            nccl.ncclGetLastError.restype = ctypes.c_char_p
            raise SystemExit(f"{name}: status {status}: {nccl.ncclGetLastError(None)}")

    devices = range(count)
    comms = (ctypes.c_void_p * count)()
    call("ncclCommInitAll", comms, count, (ctypes.c_int * count)(*devices))
    streams = []
    for device in devices:
        with cupy.cuda.Device(device):
            streams.append(cupy.cuda.Stream(non_blocking=True))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int

    def issue(what, part, send, receive):
        call("ncclGroupStart")
        for rank in devices:
            end = (pointer(comms[rank]), pointer(streams[rank].ptr))
            a, b = pointer(send[rank].data.ptr), pointer(receive[rank].data.ptr)
            if what == "all-reduce":
                call("ncclAllReduce", a, b, size(part), number(INT32), number(SUM), *end)
            elif what == "reduce":
                call("ncclReduce", a, b, size(part), number(INT32), number(SUM), number(0), *end)
            elif what == "broadcast":
                call("ncclBroadcast", a, b, size(part), number(INT32), number(0), *end)
            elif what == "all-gather":
                call("ncclAllGather", a, b, size(part), number(INT32), *end)
            elif what == "reduce-scatter":
                call("ncclReduceScatter", a, b, size(part), number(INT32), number(SUM), *end)
            else:
                for peer in devices:
                    at = 4 * part * peer
                    call("ncclSend", pointer(a.value + at), size(part), number(INT32), number(peer), *end)
                    call("ncclRecv", pointer(b.value + at), size(part), number(INT32), number(peer), *end)
        call("ncclGroupEnd")

    def wanted(what, part, sent, rank):
        if what in ("all-reduce", "reduce"):
            return sum(sent) if what == "all-reduce" or rank == 0 else None
        if what == "broadcast":
            return sent[0]
        if what == "all-gather":
            return numpy.concatenate(sent)
        mine = slice(rank * part, (rank + 1) * part)
        if what == "reduce-scatter":
            return sum(one[mine] for one in sent)
        return numpy.concatenate([one[mine] for one in sent])

    def synchronize():
        for stream in streams:
            stream.synchronize()

    random = numpy.random.default_rng()
    for what in ("all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all"):
        split = what in ("all-gather", "reduce-scatter", "all-to-all")
        for bytes_ in SIZES:
            part = bytes_ // 4 // (count if split else 1)
            if part == 0:
                continue
            reads = part * (count if what in ("reduce-scatter", "all-to-all") else 1)
            writes = part * (count if what in ("all-gather", "all-to-all") else 1)
            sent = [random.integers(-(1 << 24), 1 << 24, reads, dtype=numpy.int32) for _ in devices]
            send, receive = [], []
            for device in devices:
                with cupy.cuda.Device(device):
                    send.append(cupy.asarray(sent[device]))
                    receive.append(cupy.full(writes, -1, dtype=numpy.int32))
                    cupy.cuda.get_current_stream().synchronize()
            wrong = 0
            for _ in range(6):
                for device in devices:
                    with cupy.cuda.Device(device):
                        receive[device].fill(-1)
                        cupy.cuda.get_current_stream().synchronize()
                issue(what, part, send, receive)
                synchronize()
                for rank in devices:
                    right = wanted(what, part, sent, rank)
                    with cupy.cuda.Device(rank):
                        wrong += right is not None and not numpy.array_equal(receive[rank].get(), right)
            calls = 20 if bytes_ > 1 << 20 else 200
            times = []
            for _ in range(5):
                synchronize()
                begun = time.perf_counter()
                for _ in range(calls):
                    issue(what, part, send, receive)
                synchronize()
                times.append((time.perf_counter() - begun) / calls * 1e6)
            print(json.dumps([what, bytes_, sorted(times)[2], wrong]), flush=True)
    for comm in comms:
        call("ncclCommDestroy", pointer(comm))


def run(mode, library, count, nccl):
    # NVLink multicast is left off: a program that is killed while it uses it can leave the GPUs of a machine unusable.
    environment = dict(os.environ, TANDEM_NCCL=mode, TANDEM_NCCL_LIBRARY=nccl, NCCL_NVLS_ENABLE="0")
    command = [sys.executable, __file__, "--work", library, str(count)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"TANDEM_NCCL={mode}: status {done.returncode}\n{done.stderr[-3000:]}")
    if mode == "on" and done.stderr:
        print(done.stderr[-1000:])
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {(what, size): (us, wrong) for what, size, us, wrong in rows}


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], int(sys.argv[3]))
    import cupy

    library = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else min(8, cupy.cuda.runtime.getDeviceCount())
    nccl = os.environ.get("NCCL", sysconfig.get_paths()["purelib"] + "/nvidia/nccl/lib/libnccl.so.2")
    plain, ours = run("off", library, count, nccl), run("on", library, count, nccl)
    print(f"{count} GPUs, us a queued call: NCCL, with the fabric before it")
    for (what, size), (us, wrong) in plain.items():
        mine, bad = ours[what, size]
        print(f"{what:15} {size:9} {us:9.1f} {mine:9.1f}   {us / mine:5.2f}" + (f"   WRONG {wrong} {bad}" if wrong or bad else ""))
    wrong = sum(row[1] for row in ours.values()) + sum(row[1] for row in plain.values())
    print("all results are right" if wrong == 0 else f"{wrong} results are wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""cuFFT's transforms of complex numbers beside `tandem bench fft`, called by PyTorch: prints a row of JSON for each precision and size.

    python3 bench/peers/cufft.py FIRST LAST [RUNS]      sizes of 2^FIRST to 2^LAST

From one buffer to another in the memory of one GPU, forward and back in turn, as ours are; `ms` is the median by events of the stream. A
value of each size is compared with its definition. Without PyTorch or a GPU it says so and ends with status 3.
"""
import json
import statistics
import sys

try:
    import torch
except ImportError:
    print("cufft.py: there is no PyTorch", file=sys.stderr)
    sys.exit(3)

# How much a value may be off, of the root of the sum of the numbers' squares.
BOUNDS = {torch.complex64: 1e-5, torch.complex128: 1e-13}


def check(numbers, values):
    """Compares a value with its definition, in doubles."""
    n = len(numbers)
    k = 0x9E3779B97F4A7C15 % n
    # Exponents are reduced modulo n before they become angles.
    turns = (torch.arange(n, device=numbers.device) * k % n).double() / n
    wanted = (numbers.to(torch.complex128) * torch.polar(torch.ones_like(turns), -2 * torch.pi * turns)).sum()
    scale = numbers.abs().double().square().sum().sqrt()
    off = ((values[k] - wanted).abs() / scale).item()
    # Not so either where it is no number.
    if not off < BOUNDS[numbers.dtype]:
        sys.exit(f"cufft.py: value {k} of 2^{n.bit_length() - 1} numbers is off by {off}")


def measure(log_n, dtype, runs):
    """The times of transforms after one to warm up, in ms."""
    numbers = torch.randn(1 << log_n, dtype=dtype, device="cuda")
    values = torch.empty_like(numbers)
    torch.fft.fft(numbers, out=values)
    check(numbers, values)
    times = []
    for run in range(runs + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        transform = torch.fft.ifft if run % 2 == 0 else torch.fft.fft
        begin.record()
        transform(numbers, out=values)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times[1:]


def main(first, last, runs=10):
    if not torch.cuda.is_available():
        print("cufft.py: there is no GPU", file=sys.stderr)
        sys.exit(3)
    for precision, dtype in (("f32", torch.complex64), ("f64", torch.complex128)):
        for log_n in range(first, last + 1):
            times = measure(log_n, dtype, runs)
            row = {"what": "fft", "precision": precision, "log_n": log_n, "ms": round(statistics.median(times), 4),
                   "ms_min": round(min(times), 4), "runs": runs, "peer": f"cuFFT (PyTorch {torch.__version__})",
                   "device": torch.cuda.get_device_name()}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4 or not all(argument.isdigit() for argument in sys.argv[1:]):
        sys.exit(__doc__)
    main(*map(int, sys.argv[1:]))

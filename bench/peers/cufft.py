#!/usr/bin/env python3
"""cuFFT's transforms of complex numbers beside `tandem bench fft`, called by PyTorch: prints a row of JSON for each precision and size.

    python3 bench/peers/cufft.py FIRST LAST [RUNS] [SIDES ...]      sizes of 2^FIRST to 2^LAST, and arrays such as 4096x4096

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
    at = [0x9E3779B97F4A7C15 % side for side in numbers.shape]
    wanted = numbers.to(torch.complex128)
    # Along the last dimension first, until one value is left.
    for k, n in reversed(list(zip(at, numbers.shape))):
        # Exponents are reduced modulo n before they become angles.
        turns = (torch.arange(n, device=numbers.device) * k % n).double() / n
        wanted = (wanted * torch.polar(torch.ones_like(turns), -2 * torch.pi * turns)).sum(-1)
    scale = numbers.abs().double().square().sum().sqrt()
    off = ((values[tuple(at)] - wanted).abs() / scale).item()
    # Not so either where it is no number.
    if not off < BOUNDS[numbers.dtype]:
        sys.exit(f"cufft.py: value {at} of {list(numbers.shape)} numbers is off by {off}")


def measure(sides, dtype, runs):
    """The times of transforms after one to warm up, in ms."""
    numbers = torch.randn(sides, dtype=dtype, device="cuda")
    values = torch.empty_like(numbers)
    torch.fft.fftn(numbers, out=values)
    check(numbers, values)
    times = []
    for run in range(runs + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        transform = torch.fft.ifftn if run % 2 == 0 else torch.fft.fftn
        begin.record()
        transform(numbers, out=values)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times[1:]


def main(first, last, runs, arrays):
    if not torch.cuda.is_available():
        print("cufft.py: there is no GPU", file=sys.stderr)
        sys.exit(3)
    sizes = [({"what": "fft"}, [1 << log_n]) for log_n in range(first, last + 1)]
    sizes += [({"what": "fft_grid", "sides": text}, [int(side) for side in text.split("x")]) for text in arrays]
    for precision, dtype in (("f32", torch.complex64), ("f64", torch.complex128)):
        for named, sides in sizes:
            times = measure(sides, dtype, runs)
            log_n = sum(side.bit_length() - 1 for side in sides)
            row = named | {"precision": precision, "log_n": log_n, "ms": round(statistics.median(times), 4),
                           "ms_min": round(min(times), 4), "runs": runs, "peer": f"cuFFT (PyTorch {torch.__version__})",
                           "device": torch.cuda.get_device_name()}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    arrays = [argument for argument in arguments if "x" in argument]
    numbers = [argument for argument in arguments if "x" not in argument]
    fit = all(number.isdigit() for array in arrays for number in array.split("x")) and all(map(str.isdigit, numbers))
    if not fit or not 2 <= len(numbers) <= 3:
        sys.exit(__doc__)
    main(*map(int, (numbers + ["10"])[:3]), arrays)

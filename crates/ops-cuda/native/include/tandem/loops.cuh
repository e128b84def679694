#pragma once
// Loops that stay loops on the device, where unrolled code would not fit the caches of instructions.

#if defined(__CUDA_ARCH__)
#define TANDEM_LOOP _Pragma("unroll 1")
#else
#define TANDEM_LOOP
#endif

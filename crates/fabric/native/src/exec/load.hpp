#pragma once
// Loading kernels before they are needed: the runtime would else load each when it is first launched, and that may wait for a
// kernel that waits for this one. `blocks` becomes how many blocks of the kernel a multiprocessor holds at once.
#include <cuda_runtime.h>

namespace tandem {
namespace exec {

cudaError_t load_messages(int* blocks);
cudaError_t load_resident(int* blocks);

}  // namespace exec
}  // namespace tandem

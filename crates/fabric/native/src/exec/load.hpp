#pragma once
// Loading kernels before they are needed: the runtime would else load each when it is first launched, and that may wait for a
// kernel that waits for this one.
#include <cuda_runtime.h>

namespace tandem {
namespace exec {

cudaError_t load_messages();
cudaError_t load_resident();

}  // namespace exec
}  // namespace tandem

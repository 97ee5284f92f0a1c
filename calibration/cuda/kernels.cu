#include <cuda_runtime.h>

#include <type_traits>

#include "calibration/cuda/kernels.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr unsigned kThreads = 256;
// Beyond this, a thread takes several items; the grid still covers the largest GPU many times.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;

template <class Items>
__global__ void run_items(Items items, std::int64_t size) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += stride) {
    items(i);
  }
}

}  // namespace

int launch_kernel(const Work& work, CUstream_st* stream) {
  return std::visit(
      [stream](const auto& items) -> int {
        const std::int64_t size = items.size();
        if (size == 0) {
          return cudaSuccess;
        }
        const std::int64_t blocks = (size + kThreads - 1) / kThreads;
        cudaLaunchConfig_t launch{};
        launch.gridDim = dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
        launch.blockDim = dim3(kThreads);
        launch.stream = stream;
        // Tells of this launch alone; cudaGetLastError() would tell of an allocation that failed and was told before.
        return cudaLaunchKernelEx(&launch, run_items<std::decay_t<decltype(items)>>, items, size);
      },
      work);
}

}  // namespace ulysim::calibration::cuda

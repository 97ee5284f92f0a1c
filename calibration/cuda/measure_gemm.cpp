#include <cublasLt.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "calibration/cuda/measure.h"
#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

struct Shape {
  std::int64_t m{};  ///< tokens
  std::int64_t n{};
  std::int64_t k{};
};

// A large square first (the ceiling), then the projections of Llama-3-8B and -70B, forward and of weight gradients.
constexpr Shape kShapes[] = {
    {8192, 8192, 8192},   {16384, 16384, 8192}, {2048, 4096, 4096},  {8192, 4096, 4096},
    {8192, 6144, 4096},   {8192, 28672, 4096},  {8192, 4096, 14336}, {32768, 4096, 4096},
    {32768, 28672, 4096}, {32768, 4096, 14336}, {8192, 10240, 8192}, {8192, 57344, 8192},
    {8192, 8192, 28672},  {4096, 4096, 32768},  {512, 4096, 4096},   {8192, 128256, 4096},
};
constexpr std::int64_t kWorkspace = std::int64_t{64} << 20U;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw WorldError(fmt::format("cuBLASLt, {}: {}", what, cublasLtGetStatusString(status)));
  }
}

struct DestroyHandle {
  void operator()(cublasLtContext* handle) const { cublasLtDestroy(handle); }
};

/// Y[m][n] = X[m][k]·W[n][k]ᵀ of a device: a linear layer as PyTorch calls it, by the first algorithm proposed.
class Gemm {
 public:
  Gemm(CudaDevice& device, const Shape& shape) : device_(&device), workspace_(device, kWorkspace) {
    device.make_current();
    cublasLtHandle_t handle = nullptr;
    check(cublasLtCreate(&handle), "starting");
    handle_.reset(handle);
    // Column by column, as cuBLAS sees memory: Yᵀ[n × m] = (Wᵀ[k × n])ᵀ·Xᵀ[k × m].
    check(cublasLtMatmulDescInit(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(cublasLtMatmulDescSetAttribute(&description_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
          "a product");
    check(layout(w_, shape.k, shape.n), "a layout");
    check(layout(x_, shape.k, shape.m), "a layout");
    check(layout(y_, shape.n, shape.m), "a layout");
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(cublasLtMatmulPreferenceInit(&preference), "a preference");
    const std::uint64_t most = kWorkspace;
    check(
        cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
        "a preference");
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_.get(), &description_, &w_, &x_, &y_, &y_, &preference, 1, &algorithm_,
                                         &found),
          "asking for an algorithm");
    if (found == 0) {
      throw WorldError("cuBLASLt has no algorithm for this shape");
    }
  }

  void run(const Bf16* x, const Bf16* w, Bf16* y) {
    device_->make_current();
    const float one = 1.0F;
    const float zero = 0.0F;
    check(cublasLtMatmul(handle_.get(), &description_, &one, w, &w_, x, &x_, &zero, y, &y_, y, &y_, &algorithm_.algo,
                         workspace_.as<void>(), kWorkspace, static_cast<cudaStream_t>(device_->stream(Lane::compute))),
          "running a product");
  }

 private:
  static cublasStatus_t layout(cublasLtMatrixLayoutOpaque_t& made, std::int64_t rows, std::int64_t columns) {
    return cublasLtMatrixLayoutInit(&made, CUDA_R_16BF, static_cast<std::uint64_t>(rows),
                                    static_cast<std::uint64_t>(columns), rows);
  }

  CudaDevice* device_;
  Buffer workspace_;
  std::unique_ptr<cublasLtContext, DestroyHandle> handle_;
  cublasLtMatmulDescOpaque_t description_{};
  cublasLtMatrixLayoutOpaque_t w_{};
  cublasLtMatrixLayoutOpaque_t x_{};
  cublasLtMatrixLayoutOpaque_t y_{};
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

Iteration products(const Rig& rig, const Shape& shape) {
  constexpr std::int64_t kBf16 = 2;
  const std::int64_t all = kBf16 * (shape.m * shape.k + shape.n * shape.k + shape.m * shape.n);
  auto x = std::make_shared<RotatingBuffers>(rig, kBf16 * shape.m * shape.k, all);
  auto w = std::make_shared<RotatingBuffers>(rig, kBf16 * shape.n * shape.k, all);
  auto y = std::make_shared<RotatingBuffers>(rig, kBf16 * shape.m * shape.n, all);
  auto gemms = std::make_shared<std::vector<std::unique_ptr<Gemm>>>();
  for (CudaDevice* const device : rig.devices) {
    gemms->push_back(std::make_unique<Gemm>(*device, shape));
  }
  return [x, w, y, gemms](std::int64_t i) {
    for (std::size_t m = 0; m < gemms->size(); ++m) {
      (*gemms)[m]->run(x->at<Bf16>(m, i), w->at<Bf16>(m, i), y->at<Bf16>(m, i));
    }
  };
}

}  // namespace

void measure_gemms(const Rig& rig, Recorder& recorder) {
  for (const Shape& shape : kShapes) {
    const double flops =
        2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
    recorder.sample("gemm", fmt::format("precision=bf16 m={} n={} k={}", shape.m, shape.n, shape.k),
                    {.group = "gemm bf16", .value = flops, .unit = "TFLOP/s"}, [&] { return products(rig, shape); });
  }
}

}  // namespace ulysim::calibration::cuda

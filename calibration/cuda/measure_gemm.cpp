#include <cublasLt.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>

#include "calibration/cuda/measure.h"
#include "sim/base/check.h"

namespace ulysim::calibration::cuda {
namespace {

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
  Gemm(CudaDevice& device, const GemmProbe& shape) : device_(&device), workspace_(device, kWorkspace) {
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
    if (found == 0 || algorithm_.state != CUBLAS_STATUS_SUCCESS) {
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

using HostMatrix = std::vector<Bf16>;

HostMatrix random_matrix(std::int64_t elements, std::mt19937& random) {
  std::uniform_real_distribution<float> between(-1.0F, 1.0F);
  HostMatrix matrix(static_cast<std::size_t>(elements));
  for (Bf16& element : matrix) {
    element = to_bf16(between(random));
  }
  return matrix;
}

std::int64_t bytes_of(const HostMatrix& matrix) {
  return static_cast<std::int64_t>(matrix.size() * sizeof(Bf16));
}

/// Y = X·Wᵀ in double precision against what the GPU made of it.
double relative_error(const GemmProbe& probe, const HostMatrix& x, const HostMatrix& w, const HostMatrix& y) {
  const auto at = [](const HostMatrix& matrix, std::int64_t index) {
    return static_cast<double>(to_float(matrix[static_cast<std::size_t>(index)]));
  };
  double difference = 0.0;
  double norm = 0.0;
  for (std::int64_t i = 0; i < probe.m; ++i) {
    for (std::int64_t j = 0; j < probe.n; ++j) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < probe.k; ++k) {
        sum += at(x, i * probe.k + k) * at(w, j * probe.k + k);
      }
      const double error = at(y, i * probe.n + j) - sum;
      difference += error * error;
      norm += sum * sum;
    }
  }
  return std::sqrt(difference / norm);
}

void require_bf16(const GemmProbe& probe) {
  if (probe.batch != 1 || probe.precision.value_or(kernel::Precision::bf16) != kernel::Precision::bf16) {
    throw std::runtime_error("only single products in bf16 are measured");
  }
}

}  // namespace

Iteration prepare(const Rig& rig, const GemmProbe& probe) {
  require_bf16(probe);
  constexpr std::int64_t kBf16 = 2;
  const std::int64_t all = kBf16 * (probe.m * probe.k + probe.n * probe.k + probe.m * probe.n);
  auto x = std::make_shared<RotatingBuffers>(rig, kBf16 * probe.m * probe.k, all);
  auto w = std::make_shared<RotatingBuffers>(rig, kBf16 * probe.n * probe.k, all);
  auto y = std::make_shared<RotatingBuffers>(rig, kBf16 * probe.m * probe.n, all);
  auto gemms = std::make_shared<std::vector<std::unique_ptr<Gemm>>>();
  for (CudaDevice* const device : rig.devices) {
    gemms->push_back(std::make_unique<Gemm>(*device, probe));
  }
  return [x, w, y, gemms](std::int64_t i) {
    for (std::size_t m = 0; m < gemms->size(); ++m) {
      (*gemms)[m]->run(x->at<Bf16>(m, i), w->at<Bf16>(m, i), y->at<Bf16>(m, i));
    }
  };
}

double verify(const Rig& rig, const GemmProbe& probe) {
  require_bf16(probe);
  std::mt19937 random(7);
  const HostMatrix x = random_matrix(probe.m * probe.k, random);
  const HostMatrix w = random_matrix(probe.n * probe.k, random);
  double worst = 0.0;
  for (CudaDevice* const device : rig.devices) {
    HostMatrix y(static_cast<std::size_t>(probe.m * probe.n), Bf16{0xffff});
    const Buffer on_x(*device, bytes_of(x));
    const Buffer on_w(*device, bytes_of(w));
    const Buffer on_y(*device, bytes_of(y));
    device->upload(on_x.as<void>(), x.data(), bytes_of(x));
    device->upload(on_w.as<void>(), w.data(), bytes_of(w));
    device->upload(on_y.as<void>(), y.data(), bytes_of(y));
    Gemm gemm(*device, probe);
    gemm.run(on_x.as<Bf16>(), on_w.as<Bf16>(), on_y.as<Bf16>());
    device->synchronize();
    device->download(y.data(), on_y.as<void>(), bytes_of(y));
    const double error = relative_error(probe, x, w, y);
    worst = error <= worst ? worst : error;  // a NaN stays one
  }
  return worst;
}

}  // namespace ulysim::calibration::cuda

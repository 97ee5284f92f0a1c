#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "calibration/cuda/actions.h"
#include "calibration/cuda/cudnn_attention.h"
#include "calibration/cuda/nccl_communicator.h"
#include "sim/base/check.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

int show_gpus(const std::vector<GpuFacts>& gpus) {
  for (const GpuFacts& gpu : gpus) {
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    fmt::print("GPU {}: {}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB, L2 {:.0f} MiB\n", gpu.index,
               gpu.name, gpu.compute_capability / 10, gpu.compute_capability % 10, gpu.multiprocessors,
               static_cast<double>(gpu.memory_bytes) / kGiB, static_cast<double>(gpu.l2_bytes) / (1024.0 * 1024.0));
  }
  fmt::print("driver {}.{}, runtime {}.{}, cuDNN {}, NCCL {}\n", gpus.front().driver_version / 1000,
             gpus.front().driver_version % 1000 / 10, gpus.front().runtime_version / 1000,
             gpus.front().runtime_version % 1000 / 10, cudnn_version(), nccl_version());
  return kDone;
}

int run(const Options& options) {
  if (options.action == Action::help) {
    fmt::print("{}", usage());
    return kDone;
  }
  if (options.action == Action::plans) {
    return show_plans(options);
  }
  const auto found = find_gpus();
  if (const auto* const none = std::get_if<NoGpu>(&found)) {
    fmt::print(stderr, "{}\n", none->why);
    return kRefused;
  }
  const auto& gpus = std::get<std::vector<GpuFacts>>(found);
  switch (options.action) {
    case Action::check:
      return check_results(gpus.front());
    case Action::run:
      return run_measurements(gpus, options);
    default:
      return show_gpus(gpus);
  }
}

int run_and_explain(std::span<const std::string_view> arguments) {
  try {
    return run(parse_options(arguments));
  } catch (...) {
    return explain_failure();
  }
}

}  // namespace

int explain_failure() {
  try {
    throw;
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kRefused;
  } catch (const InternalError& error) {
    fmt::print(stderr, "internal error: {}\n", error.what());
    return kBug;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kFailed;
  }
}

}  // namespace ulysim::calibration::cuda

int main(int count, char** values) {
  const std::vector<std::string_view> arguments(values + 1, values + count);
  return ulysim::calibration::cuda::run_and_explain(arguments);
}

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/kernel/kernel.h"

namespace ulysim::calibration {

/// How long the GPU was kept busy: a burst of milliseconds runs at clocks that a training step does not hold.
enum class Regime : std::uint8_t { burst, sustained };

/// One measurement of kernels on a GPU, whatever its origin.
struct Sample {
  std::string gpu{};                      ///< on which it was measured (may stand in for the GPU that is fitted)
  std::vector<kernel::Kernel> kernels{};  ///< timed together: mostly one
  double seconds{};                       ///< median
  std::optional<double> spread{};         ///< relative, where printed
  Regime regime{Regime::burst};
  std::string source{};
};

/// Rows of `gpu,precision,m,n,k,tflops,spread,regime,source`. TFLOP/s is what sources print: 2·m·n·k / time.
/// Throws InputError with file:line for every row that cannot be read.
[[nodiscard]] std::vector<Sample> parse_gemm_samples(std::string_view text, const std::string& file);

/// Rows of `gpu,implementation,direction,mask,sequences,heads,kv_heads,head_dim,queries,keys,tflops,spread,regime,
/// source`; direction forward, backward, both, or forward+kv-write (a serving layer: the kernel and the write of K
/// and V to the cache), mask full or causal. TFLOP/s counts 4·d·pairs forward and 2.5 times that backward.
[[nodiscard]] std::vector<Sample> parse_attention_samples(std::string_view text, const std::string& file);

/// Both files of a GPU: `catalog_dir`/samples/NAME-gemm.csv and NAME-attention.csv.
[[nodiscard]] std::vector<Sample> load_samples(const std::filesystem::path& catalog_dir, const std::string& name);

/// Sum of executed_flops.
[[nodiscard]] double flops_of(const Sample& sample);

}  // namespace ulysim::calibration

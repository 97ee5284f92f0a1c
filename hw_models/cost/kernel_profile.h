#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/kernel/kernel.h"
#include "hw_models/spec/gpu.h"
#include "hw_models/spec/sourced.h"
#include "sim/base/quantity.h"

namespace ulysim::cost {

/// Matrix products: 128x256 output tiles over the SMs, each walking k with a fixed overhead.
struct GemmProfile {
  spec::Sourced<double> efficiency{};  ///< of the dense peak, a short burst of full waves, in (0, 1]
  spec::Sourced<double> sustained{};   ///< sustained rate / burst rate (power and clocks), in (0, 1]
  spec::Sourced<std::int64_t> tile_m{};
  spec::Sourced<std::int64_t> tile_n{};
  spec::Sourced<double> wave_quantisation{};  ///< 0: waves are fractions; 1: a started wave costs a whole one
  spec::Sourced<double> k_overhead{};         ///< prologue and epilogue of a tile, as so many elements of k
  spec::Sourced<Duration> launch{};           ///< of every GEMM
};

/// One fused attention kernel in one direction. With x average keys per query row, the rate of a full machine is
/// efficiency · x / (x + saturation_keys) of the peak. A causal kernel works whole tiles along the diagonal, which
/// masked_keys counts: its rate comes to that of the full one, times masked_factor, as x grows.
struct AttentionProfile {
  kernel::AttentionKernel implementation{};
  kernel::Direction direction{};
  spec::Sourced<double> efficiency_64{};    ///< of the dense peak, head_dim 64, nothing masked, endless rows
  spec::Sourced<double> efficiency_128{};   ///< the same at head_dim 128
  spec::Sourced<double> masked_factor{};    ///< causal rate / full rate of endless rows, in [0.5, 1]
  spec::Sourced<double> masked_keys{};      ///< masked keys worked on per row that the diagonal crosses, >= 0
  spec::Sourced<double> saturation_keys{};  ///< keys per query row at which half of the rate is reached, >= 0
  spec::Sourced<double> imbalance{};        ///< longest tiles that the last SM works after the average one, in [0, 1]
  spec::Sourced<Duration> launch{};         ///< per kernel launched
};

struct MemoryBoundProfile {
  spec::Sourced<double> bandwidth_efficiency{};  ///< achieved / data-sheet memory bandwidth, in (0, 1]
  spec::Sourced<Duration> launch{};              ///< per kernel
};

/// How near a GPU comes to its data sheet (catalog/kernels/NAME.yaml, written by `ulysim calibrate fit`).
struct KernelProfile {
  std::string name{};
  std::string summary{};
  GemmProfile gemm{};
  spec::Sourced<double> attention_sustained{};  ///< as gemm.sustained
  std::vector<AttentionProfile> attention{};    ///< every implementation, forward then backward
  MemoryBoundProfile memory_bound{};
};

/// The names of scenarios: "flash-attention-2", "flash-attention-3", "cudnn", "sdpa".
[[nodiscard]] std::string_view name_of(kernel::AttentionKernel implementation);
/// "forward", "backward".
[[nodiscard]] std::string_view name_of(kernel::Direction direction);

/// The entry of an implementation and direction. A loaded profile holds all of them.
[[nodiscard]] const AttentionProfile& attention_profile(const KernelProfile& profile,
                                                        kernel::AttentionKernel implementation,
                                                        kernel::Direction direction);

/// Throws InputError with every mistake: unknown or missing keys, a fraction outside (0, 1], an implementation
/// missing or given twice.
[[nodiscard]] KernelProfile load_kernel_profile(const std::filesystem::path& path);
/// The same from text; `file` is the name used in messages.
[[nodiscard]] KernelProfile parse_kernel_profile(std::string_view text, const std::string& file);

/// `catalog_dir`/kernels/NAME.yaml of the GPU's `kernel_profile`, or generic.yaml when it names none.
[[nodiscard]] KernelProfile find_kernel_profile(const std::filesystem::path& catalog_dir, const spec::Gpu& gpu);

}  // namespace ulysim::cost

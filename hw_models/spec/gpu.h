#pragma once

#include <optional>
#include <string>

#include "hw_models/spec/sourced.h"
#include "sim/base/quantity.h"

namespace ulysim::spec {

/// A GPU as its data sheet and measurements describe it (catalog/gpus/NAME.yaml).
struct Gpu {
  std::string name{};
  std::string summary{};
  Sourced<Bytes> memory{};  ///< usable device memory
  Sourced<Bandwidth> memory_bandwidth{};
  Sourced<std::int64_t> sms{};
  Sourced<FlopRate> bf16{};  ///< dense, without sparsity
  std::optional<Sourced<FlopRate>> fp8{};
  std::optional<Sourced<FlopRate>> fp4{};
  /// What fp8 and fp4 products reach of their peak over what bf16 ones reach of theirs.
  Sourced<double> low_precision_efficiency{.value = 0.883};
  /// What large products hold of the rate that the kernel profile gives them, under another power limit than its GPU's.
  Sourced<double> sustained_efficiency{.value = 1.0};
  /// Reached / data-sheet memory bandwidth; absent: the kernel profile's.
  std::optional<Sourced<double>> bandwidth_efficiency{};
  std::optional<Sourced<double>> power_watts{};  ///< limit that the rates hold under
  std::string kernel_profile{};                  ///< catalog/kernels/NAME.yaml; empty: the generic one
};

}  // namespace ulysim::spec

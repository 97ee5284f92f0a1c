#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/spec/cluster.h"
#include "hw_models/spec/framework.h"
#include "hw_models/spec/gpu.h"
#include "sim/base/diagnostics.h"

namespace ulysim::spec {

/// The folder of hardware and framework descriptions: gpus/, nodes/, frameworks/, one NAME.yaml each. It is read at
/// every call, so a file dropped into it is found without a rebuild.
///
/// Every number stands as `{value: 80GiB, source: "…", kind: datasheet|published|measured|assumed, spread: 0.05}`;
/// source and kind are required. Missing and unknown keys, wrong units and values outside sane bounds
/// (efficiencies over 1.2, capacities of nothing or of a million times what exists) are located mistakes, all
/// reported in one InputError. An unknown name is one at `asked_at` (the place that names it) with "did you mean".
/// A name is letters, digits, '-', '_' and '.', not led by a '.': nothing outside the folder is ever opened.
/// Thread safety: const calls may run side by side.
class Catalog {
 public:
  explicit Catalog(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] Gpu load_gpu(std::string_view name, const Location& asked_at = {}) const;
  /// Also checks that the node's GPU is in the catalogue and that GPUs, NICs and uplinks divide each other.
  [[nodiscard]] Node load_node(std::string_view name, const Location& asked_at = {}) const;
  [[nodiscard]] Framework load_framework(std::string_view name, const Location& asked_at = {}) const;

  /// Sorted.
  [[nodiscard]] std::vector<std::string> gpu_names() const;
  [[nodiscard]] std::vector<std::string> node_names() const;
  [[nodiscard]] std::vector<std::string> framework_names() const;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace ulysim::spec

#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/load.h"
#include "sim/base/diagnostics.h"
#include "sim/workload/transformer.h"

namespace ulysim::scenario {

/// What scenarios name: nodes, GPUs, frameworks, kernel profiles and models, each file read once. The thousands of
/// scenarios of a sweep name a handful of them. What is wrong is told at every asking, with the place that asks.
/// Thread safety: none; each thread has one of its own.
class Library {
 public:
  /// `data` is the folder that holds `catalog` and `scenarios`.
  explicit Library(const std::filesystem::path& data)
      : catalog_(data / "catalog"), models_(data / "scenarios" / "models") {}

  // All throw InputError.
  [[nodiscard]] const spec::Node& node(const std::string& name, const Location& asked_at);
  [[nodiscard]] const spec::Gpu& gpu(const std::string& name, const Location& asked_at);
  [[nodiscard]] const spec::Framework& framework(const std::string& name, const Location& asked_at);
  [[nodiscard]] const cost::KernelProfile& kernels(const spec::Gpu& gpu);
  /// By catalogue name, or by path from `folder` when the name holds a '/' or ends in ".json".
  [[nodiscard]] const workload::Transformer& model(const std::string& name, const Location& asked_at,
                                                   const std::filesystem::path& folder);

 private:
  template <class T>
  using Known = std::map<std::string, T>;

  spec::Catalog catalog_;
  std::filesystem::path models_;
  Known<spec::Node> nodes_;
  Known<spec::Gpu> gpus_;
  Known<spec::Framework> frameworks_;
  Known<cost::KernelProfile> kernels_;
  std::map<std::pair<std::string, std::string>, workload::Transformer> transformers_;  ///< by folder and name
};

}  // namespace ulysim::scenario

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/document.h"
#include "sim/scenario/library.h"
#include "sim/scenario/scenario.h"

namespace ulysim::scenario {

/// The `cluster` mapping, its node and GPU looked up. Absent when something is wrong, which was reported.
[[nodiscard]] std::optional<spec::Cluster> read_cluster(const config::Node& node, Library& library,
                                                        Diagnostics& diagnostics);

/// Where a model stands: `models` is the folder of the shipped ones, `folder` what a relative path counts from.
struct ModelFolders {
  std::filesystem::path models{};
  std::filesystem::path folder{};
};

/// A model by catalogue name, or by path when the text holds a '/' or ends in ".json". Absent when it cannot be read
/// or is of a kind that is not yet simulated, which was reported at `asked_at`.
[[nodiscard]] std::optional<workload::Transformer> find_model(const std::string& name, const Location& asked_at,
                                                              const ModelFolders& folders, Diagnostics& diagnostics);

/// The path of a model's config.json; for `ulysim model`, which also shows what is not yet simulated.
[[nodiscard]] std::optional<std::filesystem::path> find_model_file(const std::string& name, const Location& asked_at,
                                                                   const ModelFolders& folders,
                                                                   Diagnostics& diagnostics);

/// Sorted names of the models in `models`.
[[nodiscard]] std::vector<std::string> model_names(const std::filesystem::path& models);

/// Why the simulator does not take this model yet ("model 'x' has 8 experts …"); empty when it does.
[[nodiscard]] std::string not_yet_simulated(const workload::Transformer& model);

/// Passes on what another file's reader found.
void add_all(const InputError& error, Diagnostics& diagnostics);

}  // namespace ulysim::scenario

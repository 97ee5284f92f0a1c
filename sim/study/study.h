#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "sim/results/study_result.h"
#include "sim/scenario/scenario.h"

namespace ulysim::study {

enum class Detail : std::uint8_t {
  memory,   ///< of the figures only step time and memory, the same as in `figures`
  numbers,  ///< all figures but the pictures: no layer's timeline, memory by kind or links of the drawing
  figures,
  trace,  ///< also `Figures::trace`: every span of every simulated rank class
};

/// Told how far a study is, by one thread at a time: `done` of `total` plans, rows or points.
using OnProgress = std::function<void(std::size_t done, std::size_t total)>;

struct StudyOptions {
  Detail detail{Detail::figures};
  OnProgress on_progress{};  ///< may be empty
};

/// All plans. A plan that cannot run is a value in the result. Throws RangeError when a figure leaves the range of
/// the simulator (a link of 1 B/s).
[[nodiscard]] results::StudyResult compare(const scenario::Scenario& scenario, const StudyOptions& options);

/// The first plan only.
[[nodiscard]] results::StudyResult run(const scenario::Scenario& scenario, const StudyOptions& options);

/// The longest sequence that trains, for every plan, and its figures there; lengths of the scenario do not matter.
/// Found on the simulated memory of legal lengths (see legal_lengths.h), each known to fit and the next one not to.
[[nodiscard]] results::StudyResult maxseq(const scenario::Scenario& scenario, const StudyOptions& options);

/// What `explain` prints; the scenario itself is printed by scenario::describe.
enum class Stage : std::uint8_t { logical, parallel, timeline };
/// `plan` < scenario.plans.size(). Text that ends in a newline. A plan that cannot run gives its reasons for
/// `parallel` and `timeline`.
[[nodiscard]] std::string explain(const scenario::Scenario& scenario, Stage stage, std::size_t plan);

/// Published measurements (YAML files, or folders of them) against predictions; without `paths` the shipped ones in
/// `data`/scenarios/published. `data` holds `catalog` and `scenarios`. InputError when a file is wrong.
[[nodiscard]] results::ValidationResult validate(std::span<const std::filesystem::path> paths,
                                                 const std::filesystem::path& data, const OnProgress& on_progress = {});

/// What was read from a model.
[[nodiscard]] results::ModelInfo model_info(const workload::Transformer& model);

}  // namespace ulysim::study

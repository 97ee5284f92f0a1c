#pragma once

#include <string>

#include "reports/writer.h"
#include "sim/config/write_json.h"

namespace ulysim::reports {

/// Grows when a key changes its meaning, never when one is added.
inline constexpr std::int64_t kResultVersion = 1;

/// What `--json` writes; `result_reader` reads it back. Without a newline at its end.
[[nodiscard]] std::string json_text(const Report& report, config::JsonLayout layout);

// Its parts.
[[nodiscard]] config::Json plan_json(const results::PlanResult& plan);
[[nodiscard]] config::Json topology_json(const results::StudyResult& study);
[[nodiscard]] config::Json layer_timeline_json(const results::LayerTimeline& timeline);
[[nodiscard]] config::Json memory_by_kind_json(const results::Figures& figures);

[[nodiscard]] inline double json_gib(Bytes bytes) {
  return gibibytes(bytes);
}
[[nodiscard]] inline double json_seconds(Instant at) {
  return seconds(at - Instant());
}
[[nodiscard]] const char* fit_name(results::Fit fit);

}  // namespace ulysim::reports

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/scenario/scenario.h"

namespace ulysim::scenario {

/// Lays "plans.0.ulysses=4" over a document. Missing mappings are made; a number indexes a sequence, and one past
/// its end appends. The value is read as YAML ("[a, b]" is a list). Places of what was set: its origin as file, its
/// number as line, the column within its text. Mistakes go to `diagnostics`.
void apply_overrides(config::Node& document, const std::vector<Override>& overrides, Diagnostics& diagnostics);

/// Lays one value over a document at "plans.0.ulysses", in the same way. What has to be made on the way, and what is
/// wrong with the path, stands at `path_at`.
void set_value(config::Node& document, std::string_view path, const Location& path_at, config::Node value,
               Diagnostics& diagnostics);

}  // namespace ulysim::scenario

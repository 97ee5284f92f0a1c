#pragma once

#include <string>

#include "sim/config/document.h"

namespace ulysim::config {

/// The document as YAML that `parse_yaml` reads back to the same tree (places aside): one line for what fits into one.
/// Comments, anchors and the choice of quotes are not kept. Ends in a newline.
[[nodiscard]] std::string write_yaml(const Node& root);

}  // namespace ulysim::config

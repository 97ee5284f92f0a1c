#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"

namespace ulysim::spec {

/// Letters, digits, '-', '_' and '.', not led by a '.', at most 100: never a path.
[[nodiscard]] bool is_catalog_name(std::string_view name);

/// Names of the `.yaml` files in `folder`, sorted; none when there is no such folder.
[[nodiscard]] std::vector<std::string> catalog_names(const std::filesystem::path& folder);

/// The document of `folder/name.yaml`. InputError at `asked_at` with "did you mean" when there is none; `what` is
/// what the message calls the thing ("GPU").
[[nodiscard]] config::Node load_catalog_file(const std::filesystem::path& folder, std::string_view name,
                                             std::string_view what, const Location& asked_at);

}  // namespace ulysim::spec

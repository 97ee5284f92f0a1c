#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ulysim {

/// The candidate nearest to `name` in edit distance (ties: first in order), or empty when none is near enough
/// to be what was meant (distance over a third of the longer name, at least 1).
[[nodiscard]] std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// "; did you mean 'x'?" when something is near, else "; known: a, b, c" (at most 12, then "…").
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace ulysim

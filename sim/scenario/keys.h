#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ulysim::scenario {

/// One key of a scenario or a sweep file. The loader reads no key that is not in the table and asks for every one that
/// is; the JSON Schema is held to the same table by a test.
struct Key {
  std::string_view section{};  ///< "scenario" (the top), "cluster", "network", "training", "sweep" …
  std::string_view name{};
  std::vector<std::string> words{};    ///< what may stand there, where it is one of a few words
  std::vector<std::string> not_yet{};  ///< words that are understood and refused as not yet supported
};

/// In the order in which they are told and named.
[[nodiscard]] const std::vector<Key>& keys();
/// nullptr when the section has no such key.
[[nodiscard]] const Key* find_key(std::string_view section, std::string_view name);

}  // namespace ulysim::scenario

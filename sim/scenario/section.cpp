#include "sim/scenario/section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/named.h"

namespace ulysim::scenario {

Section::Section(const config::Node& node, std::string path, std::vector<std::string_view> sections,
                 Diagnostics& diagnostics)
    : map_(node, path, diagnostics), path_(std::move(path)), sections_(std::move(sections)) {}

const Key& Section::key(std::string_view name) {
  for (const std::string_view section : sections_) {
    if (const Key* found = find_key(section, name)) {
      asked_.push_back(found);
      return *found;
    }
  }
  ULYSIM_CHECK(false, "key '{}' is not in the table of scenario keys", name);
  return keys().front();
}

const config::Node* Section::find(std::string_view name) {
  (void)key(name);
  return map_.find(name);
}

std::vector<const config::Node*> Section::items(std::string_view name) {
  (void)key(name);
  return map_.items(name);
}

std::optional<std::int64_t> Section::integer(std::string_view name, Range range) {
  const auto value = maybe<std::int64_t>(name);
  if (value && (*value < range.low || *value > range.high)) {
    error(name, fmt::format("{} is outside {} to {}", *value, range.low, range.high));
    return std::nullopt;
  }
  return value;
}

std::optional<double> Section::number(std::string_view name, double low, double high) {
  const auto value = maybe<double>(name);
  if (value && !(*value >= low && *value <= high)) {
    error(name, fmt::format("{} is outside {} to {}", *value, low, high));
    return std::nullopt;
  }
  return value;
}

std::optional<std::size_t> Section::word(std::string_view name) {
  const Key& k = key(name);
  const config::Node* value = map_.find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::string supported = fmt::format("not yet supported; supported: {}", fmt::join(k.words, ", "));
  if (value->kind != config::Node::Kind::scalar) {
    // {sliding_window: 4096}, {layers: 8}: legal one day, so the key inside is what the message names.
    const std::string inside = value->entries.empty() ? "a list or mapping" : "'" + value->entries.front().key + "'";
    error(name, fmt::format("{} is {}", inside, supported));
    return std::nullopt;
  }
  if (std::find(k.not_yet.begin(), k.not_yet.end(), value->text) != k.not_yet.end()) {
    error(name, fmt::format("'{}' is {}", value->text, supported));
    return std::nullopt;
  }
  const auto found = std::find(k.words.begin(), k.words.end(), value->text);
  if (found == k.words.end()) {
    return map_.choice(name, k.words, 0);  // reports with "did you mean"
  }
  return static_cast<std::size_t>(found - k.words.begin());
}

void Section::error_here(std::string_view message) {
  map_.diagnostics().error(where(), fmt::format("'{}': {}", path_, message));
}

void Section::finish() {
  for (const Key& k : keys()) {
    const bool mine = std::find(sections_.begin(), sections_.end(), k.section) != sections_.end();
    ULYSIM_CHECK(!mine || std::find(asked_.begin(), asked_.end(), &k) != asked_.end(),
                 "the table of scenario keys has '{}.{}', but the loader never reads it", k.section, k.name);
  }
  map_.finish();
}

}  // namespace ulysim::scenario

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/config/mapping.h"
#include "sim/scenario/keys.h"

namespace ulysim::scenario {

/// One mapping of a scenario, read by the table of keys. Every reader tells "not there" (or wrong, which was
/// reported) by nullopt.
class Section {
 public:
  struct Range {
    std::int64_t low{};
    std::int64_t high{};
  };

  /// `sections` are those of the table whose keys may stand here (a plan takes training keys too).
  Section(const config::Node& node, std::string path, std::vector<std::string_view> sections, Diagnostics& diagnostics);

  template <class T>
  [[nodiscard]] std::optional<T> maybe(std::string_view name) {
    (void)key(name);
    return map_.maybe<T>(name);
  }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, Range range);
  /// In [low, high].
  [[nodiscard]] std::optional<double> number(std::string_view name, double low, double high);
  /// Index into `Key::words`. Words of `Key::not_yet`, and anything that is no scalar, are refused as not yet
  /// supported; what else stands there is reported with "did you mean".
  [[nodiscard]] std::optional<std::size_t> word(std::string_view name);
  [[nodiscard]] const config::Node* find(std::string_view name);
  [[nodiscard]] std::vector<const config::Node*> items(std::string_view name);

  /// At the key's value, "'path.name': " in front.
  void error(std::string_view name, const std::string& message) { map_.error(name, message); }
  /// At the mapping as a whole, "'path': " in front.
  void error_here(std::string_view message);
  [[nodiscard]] std::string path_of(std::string_view name) const { return map_.path_of(name); }
  [[nodiscard]] const Location& where() const { return map_.where(); }
  [[nodiscard]] Diagnostics& diagnostics() { return map_.diagnostics(); }

  /// Reports unknown keys; checks that every key of the sections was asked for.
  void finish();

 private:
  [[nodiscard]] const Key& key(std::string_view name);

  config::Mapping map_;
  std::string path_;
  std::vector<std::string_view> sections_;
  std::vector<const Key*> asked_;
};

}  // namespace ulysim::scenario

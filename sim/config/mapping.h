#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/quantity.h"
#include "sim/config/document.h"

namespace ulysim::config {

/// Typed reading of one node. Each returns nothing and adds a located diagnostic "'path': …" when the text is
/// not of that type. Integers take the count grammar ("1Mi"); only `true` and `false` are booleans.
/// Quoted text is never a count, number or boolean; quantities with units may be quoted (JSON writes them so).
/// Explicit instantiations exist for std::string, bool, std::int64_t, double, Bytes, Bandwidth, FlopRate, Duration.
template <class T>
[[nodiscard]] std::optional<T> read(const Node& node, std::string_view path, Diagnostics& diagnostics);

/// Reads a mapping key by key and remembers which were asked for, so that `finish()` can report the rest as
/// unknown with "did you mean". Never throws; mistakes go to the collector, and the fallback is returned.
class Mapping {
 public:
  /// `path` is what messages call this mapping ("training", "plans[2]"); empty at the top.
  /// A node that is no mapping is reported once and then reads as empty. `node` must outlive this.
  Mapping(const Node& node, std::string path, Diagnostics& diagnostics);

  template <class T>
  [[nodiscard]] T required(std::string_view key);
  template <class T>
  [[nodiscard]] T optional(std::string_view key, T fallback);
  template <class T>
  [[nodiscard]] std::optional<T> maybe(std::string_view key);

  /// One of `allowed` (as index), or `fallback`; anything else is reported with "did you mean".
  [[nodiscard]] std::size_t choice(std::string_view key, std::span<const std::string> allowed, std::size_t fallback);
  /// Integer in [low, high].
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high);

  /// The raw value, marked as asked for; nullptr when absent or null.
  [[nodiscard]] const Node* find(std::string_view key);
  /// The items of a sequence, or none (a non-sequence is reported).
  [[nodiscard]] std::vector<const Node*> items(std::string_view key);
  /// Accepts `key` without reading it.
  void ignore(std::string_view key);

  /// Reports every key that was never asked for.
  void finish();

  /// At the node; the message stands as given.
  void error(const Node& at, std::string message);
  /// At the key's value if present, else at the mapping. "'path.key': " is put in front of the message.
  void error(std::string_view key, const std::string& message);
  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] const Location& where() const { return node_->where; }
  [[nodiscard]] Diagnostics& diagnostics() { return *diagnostics_; }

 private:
  void error_at_key(std::string_view key, std::string message);

  const Node* node_;
  std::string path_;
  Diagnostics* diagnostics_;
  std::vector<std::string> asked_;
  bool broken_{};  ///< no mapping at all: said once, its keys are not missed one by one
};

}  // namespace ulysim::config

#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/config/mapping.h"

namespace ulysim::reports {

/// The number that was divided by `divisor` when `quotient` was written, or one that gives the same quotient.
[[nodiscard]] double before_division(double quotient, double divisor);

/// Seconds from 0 to 100 days.
[[nodiscard]] Duration read_seconds(const config::Node& node, std::string_view path, Diagnostics& diagnostics);
/// GiB from 0 to 4 million, so that sums of bytes stay in range.
[[nodiscard]] Bytes read_gib(const config::Node& node, std::string_view path, Diagnostics& diagnostics);

/// An object of a saved result, read key by key. Mistakes go to the collector and the reader goes on with zero or
/// nothing; keys that are not asked for are passed over.
class Fields {
 public:
  Fields(const config::Node& node, std::string path, Diagnostics& diagnostics)
      : node_(&node), mapping_(node, std::move(path), diagnostics) {}

  // These must be there.
  [[nodiscard]] std::string text(std::string_view key) { return mapping_.required<std::string>(key); }
  [[nodiscard]] bool truth(std::string_view key) { return mapping_.required<bool>(key); }
  [[nodiscard]] std::int64_t count(std::string_view key) { return mapping_.required<std::int64_t>(key); }
  [[nodiscard]] double number(std::string_view key) { return mapping_.required<double>(key); }
  [[nodiscard]] double gigabytes_per_second(std::string_view key) { return before_division(number(key), 1e9); }
  [[nodiscard]] Duration seconds(std::string_view key);
  [[nodiscard]] Instant instant(std::string_view key) { return Instant() + seconds(key); }
  [[nodiscard]] Bytes gib(std::string_view key);
  /// From 0 to `size` − 1.
  [[nodiscard]] std::uint32_t index(std::string_view key, std::size_t size);
  /// One of `words`, as index.
  [[nodiscard]] std::size_t word(std::string_view key, const std::vector<std::string>& words);

  // These may be missing, or null.
  template <class T>
  [[nodiscard]] std::optional<T> maybe(std::string_view key) {
    return mapping_.maybe<T>(key);
  }
  [[nodiscard]] std::optional<Duration> maybe_seconds(std::string_view key) {
    return has(key) ? std::optional(seconds(key)) : std::nullopt;
  }
  [[nodiscard]] bool has(std::string_view key) { return mapping_.find(key) != nullptr; }

  /// The object under `key`. One that is missing ends the reading: throws InputError with all found so far.
  [[nodiscard]] Fields object(std::string_view key);

  /// read(node, path) of each item of a list. None when it is missing.
  template <class Read>
  void each(std::string_view key, Read read) {
    const auto items = mapping_.items(key);
    for (std::size_t i = 0; i < items.size(); ++i) {
      read(*items[i], mapping_.path_of(key) + '[' + std::to_string(i) + ']');
    }
  }
  /// read(name, value, path) of each member of the object under `key`, which must be there.
  template <class Read>
  void each_member(std::string_view key, Read read) {
    const Fields inner = object(key);
    for (const config::Entry& entry : inner.node_->entries) {
      read(entry.key, entry.value, inner.mapping_.path_of(entry.key));
    }
  }
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) { return list<std::string>(key); }
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view key) { return list<std::int64_t>(key); }
  [[nodiscard]] std::vector<double> numbers(std::string_view key) { return list<double>(key); }

  void error(std::string_view key, const std::string& message) { mapping_.error(key, message); }
  [[nodiscard]] Diagnostics& diagnostics() { return mapping_.diagnostics(); }

 private:
  /// Reports it, and gives 0.
  std::int64_t missing(std::string_view key);

  template <class T>
  [[nodiscard]] std::vector<T> list(std::string_view key) {
    std::vector<T> out;
    each(key, [&](const config::Node& item, const std::string& path) {
      out.push_back(config::read<T>(item, path, diagnostics()).value_or(T()));
    });
    return out;
  }

  const config::Node* node_;
  config::Mapping mapping_;
};

}  // namespace ulysim::reports

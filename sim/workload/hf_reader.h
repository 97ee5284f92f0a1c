#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/mapping.h"

namespace ulysim::workload::hf {

using Names = std::initializer_list<std::string_view>;
using Size = std::optional<std::int64_t>;

// Far above every model, and low enough that no product below leaves int64 (see `check_total`).
inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostHeads = 65'536;
inline constexpr std::int64_t kMostWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostVocab = std::int64_t{1} << 28;
inline constexpr std::int64_t kMostPositions = std::int64_t{1} << 31;

/// One mapping of the file; a size that cannot be read is reported once and then absent.
class Reader {
 public:
  Reader(const config::Node& text, const config::Node& root, std::string path, Diagnostics& diagnostics);

  [[nodiscard]] config::Mapping& map() { return map_; }
  [[nodiscard]] const config::Node& text() const { return *text_; }
  [[nodiscard]] const config::Node& root() const { return *root_; }
  [[nodiscard]] bool clean() { return errors() == 0; }
  [[nodiscard]] std::size_t errors() { return map_.diagnostics().list().size() - at_begin_; }

  /// The size under the first of `names` that is there (they are synonyms and must agree), else `fallback`.
  Size size(Names names, std::int64_t most, Size fallback);
  /// The same; missing without a fallback is an error.
  Size required(Names names, std::int64_t most, Size fallback = {});
  /// A size for which an explicit null means "none" and absence means `fallback`.
  Size nullable(std::string_view name, std::int64_t most, Size fallback);
  Size integer(std::string_view name, std::int64_t low, std::int64_t most);
  /// A list of integers in [0, most]; absent or null: empty.
  std::vector<std::int64_t> integers(std::string_view name, std::int64_t most);
  /// Like every list with one item a layer: reported when it has another length.
  void check_length(std::string_view name, std::size_t length, std::int64_t layers);

 private:
  const config::Node* text_;
  const config::Node* root_;
  config::Mapping map_;
  std::size_t at_begin_{};
};

}  // namespace ulysim::workload::hf

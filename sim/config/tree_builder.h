#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/document.h"

namespace ulysim::config {

/// Line and column, counted from 1; columns count bytes.
struct Place {
  int line{1};
  int column{1};
};

/// Walks forward through a text and tells the place of a byte offset; offsets must not decrease.
class PlaceCounter {
 public:
  explicit PlaceCounter(std::string_view text) : text_(text) {}
  [[nodiscard]] Place at(std::size_t offset);

 private:
  std::string_view text_;
  std::size_t offset_{};
  Place place_{};
};

/// The text without a byte-order mark. Throws InputError at the first byte that is no UTF-8, and at control
/// characters (yaml-cpp takes byte 4 for the end of the file and zeros for UTF-16).
[[nodiscard]] std::string_view checked_text(std::string_view text, const std::string& file);

/// Builds the tree from parse events and holds the limits that YAML and JSON share. An alias is an edge to the
/// node that it names; sizes and heights are summed over edges, so a bomb is refused before anything is copied.
///
/// Contract: events come well nested. Mistakes that leave the structure readable (duplicate keys, tags) are
/// collected; `stop` and the limits end at once by throwing InputError with all collected so far.
class TreeBuilder {
 public:
  struct Limits {
    std::size_t nodes{};
    int depth{64};
  };
  /// 0 means "no anchor".
  using AnchorId = std::size_t;

  TreeBuilder(std::string file, Limits limits) : file_(std::move(file)), limits_(limits) {}

  void null(Place place, AnchorId anchor);
  struct Text {
    std::string text{};
    bool quoted{};
  };
  void scalar(Place place, Text text, AnchorId anchor);
  void alias(Place place, AnchorId anchor);
  void begin(Node::Kind kind, Place place, AnchorId anchor);
  void end();

  void error(Place place, std::string message);
  [[noreturn]] void stop(Place place, std::string message);

  /// The finished tree; throws when mistakes were collected. A document without content is a null node.
  [[nodiscard]] Node finish();

 private:
  struct RawEntry {
    std::string key{};
    Place place{};
    std::size_t value{};
  };
  struct RawNode {
    Node::Kind kind{Node::Kind::null};
    Place place{};
    Text text{};
    std::vector<std::size_t> items{};
    std::vector<RawEntry> entries{};
    std::size_t size{1};  ///< nodes below and with this one, aliases expanded
    int height{1};
    bool open{};
  };
  struct Key {
    std::string text{};
    Place place{};
  };
  struct Open {
    std::size_t node{};
    std::optional<Key> key{};
    bool is_key{};  ///< stands where a key should; hangs under nothing
    std::map<std::string, int, std::less<>> first_line{};
  };

  [[nodiscard]] bool wants_key() const;
  void take_key(Place place, Text text);
  void refuse_key(Place place, std::string_view what);
  /// Hangs a new node (or an alias's target) under the open collection.
  void attach(std::size_t node);
  [[nodiscard]] std::size_t add(RawNode node, AnchorId anchor);
  [[nodiscard]] Node expand(std::size_t index) const;
  [[nodiscard]] Location located(Place place) const;

  std::string file_;
  Limits limits_;
  Diagnostics diagnostics_;
  Diagnostics unfit_keys_;  ///< told only when the document ends: an unclosed bracket looks like a key to yaml-cpp
  std::vector<RawNode> nodes_;
  std::vector<Open> open_;
  std::map<AnchorId, std::size_t> anchors_;
  std::size_t total_{};
};

}  // namespace ulysim::config

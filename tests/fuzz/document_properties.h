#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/check.h"
#include "sim/config/mapping.h"

namespace ulysim::config {

/// What holds of every tree that a reader lets through.
inline void check_tree(const Node& node, int depth) {
  ULYSIM_CHECK(depth <= 65, "a leaf at depth {}", depth);  // 64 collections, and a scalar in the last
  ULYSIM_CHECK(node.where.line >= 1 && node.where.column >= 1, "a node without a place");
  ULYSIM_CHECK(node.kind == Node::Kind::scalar || (node.text.empty() && !node.quoted), "text on a collection");
  for (const Node& item : node.items) {
    check_tree(item, depth + 1);
  }
  for (const Entry& entry : node.entries) {
    ULYSIM_CHECK(node.find(entry.key) == &entry.value, "key '{}' stands twice", entry.key);
    check_tree(entry.value, depth + 1);
  }
}

/// The typed readers collect and never throw, whatever they are given.
inline void read_everything(const Node& node, Diagnostics& diagnostics) {
  static_cast<void>(read<std::string>(node, "x", diagnostics));
  static_cast<void>(read<bool>(node, "x", diagnostics));
  static_cast<void>(read<std::int64_t>(node, "x", diagnostics));
  static_cast<void>(read<double>(node, "x", diagnostics));
  static_cast<void>(read<Bytes>(node, "x", diagnostics));
  Mapping mapping(node, "x", diagnostics);
  static_cast<void>(mapping.required<Bandwidth>("a"));
  static_cast<void>(mapping.items("training"));
  mapping.finish();
  for (const Node& item : node.items) {
    read_everything(item, diagnostics);
  }
  for (const Entry& entry : node.entries) {
    read_everything(entry.value, diagnostics);
  }
}

/// A document is read, or refused with at least one located sentence; anything else escapes as a failure.
inline void check_document(Node (*parse)(std::string_view, const std::string&), std::string_view text) {
  try {
    const Node node = parse(text, "f");
    check_tree(node, 1);
    Diagnostics diagnostics;
    read_everything(node, diagnostics);
  } catch (const InputError& e) {
    ULYSIM_CHECK(!e.diagnostics().empty(), "refused without a reason");
    for (const Diagnostic& diagnostic : e.diagnostics()) {
      ULYSIM_CHECK(diagnostic.where.line >= 1 && diagnostic.where.column >= 1, "no place: {}", diagnostic.message);
      ULYSIM_CHECK(!diagnostic.message.empty() && diagnostic.message.size() < 300, "{}", diagnostic.message);
    }
  }
}

}  // namespace ulysim::config

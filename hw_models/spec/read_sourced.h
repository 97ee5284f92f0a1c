#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "hw_models/spec/sourced.h"
#include "sim/base/format.h"
#include "sim/config/mapping.h"

namespace ulysim::spec {

/// What a value may be; both ends belong to it.
template <class T>
struct Bounds {
  T low{};
  T high{};
};

/// A value that is one of a few words, in the order of its enum.
struct Words {
  std::span<const std::string> allowed{};
};

[[nodiscard]] inline std::string shown(double value) {
  return fmt::format("{}", value);
}
[[nodiscard]] inline std::string shown(std::int64_t value) {
  return fmt::format("{}", value);
}
template <class Kind, class Rep>
[[nodiscard]] std::string shown(Quantity<Kind, Rep> value) {
  return exact(value);
}

inline void report_missing(config::Mapping& map, std::string_view key, std::string_view hint = {}) {
  map.diagnostics().error(map.where(), fmt::format("missing key '{}'{}", map.path_of(key), hint));
}

/// Reads `source`, `kind` and `spread` of a sourced number and ends the mapping.
template <class T>
void read_provenance(config::Mapping& map, Sourced<T>& out) {
  static const std::array<std::string, 4> kinds{"datasheet", "published", "measured", "assumed"};
  out.source = map.required<std::string>("source");
  if (const config::Node* source = map.find("source"); source != nullptr &&
                                                       source->kind == config::Node::Kind::scalar &&
                                                       source->text.find_first_not_of(" \t\n") == std::string::npos) {
    map.error("source", "a number needs a source: say where it comes from");
  }
  if (map.find("kind") == nullptr) {
    report_missing(map, "kind", ": datasheet, published, measured or assumed");
  }
  out.kind = static_cast<SourceKind>(map.choice("kind", kinds, 3));
  out.spread = map.maybe<double>("spread");
  if (out.spread && (*out.spread < 0.0 || *out.spread > 10.0)) {
    map.error("spread", fmt::format("{} is outside 0 … 10", *out.spread));
  }
  map.finish();
}

/// The mapping under `key`, or nothing (reported).
[[nodiscard]] inline std::optional<config::Mapping> sourced_mapping(config::Mapping& parent, std::string_view key) {
  const config::Node* node = parent.find(key);
  if (node == nullptr) {
    report_missing(parent, key);
    return std::nullopt;
  }
  if (node->kind != config::Node::Kind::mapping) {
    parent.error(*node, fmt::format("'{}': a bare value has no source; write {{value: …, source: \"…\", kind: …}}",
                                    parent.path_of(key)));
    return std::nullopt;
  }
  return config::Mapping(*node, parent.path_of(key), parent.diagnostics());
}

/// Reads `key: {value, source, kind, spread}` into `out`; every mistake goes to the parent's collector.
template <class T>
void read_sourced(config::Mapping& parent, std::string_view key, Sourced<T>& out, const Bounds<T>& bounds) {
  std::optional<config::Mapping> map = sourced_mapping(parent, key);
  if (!map) {
    return;
  }
  if (const config::Node* value = map->find("value"); value == nullptr) {
    report_missing(*map, "value");
  } else if (const auto read = config::read<T>(*value, map->path_of("value"), map->diagnostics())) {
    out.value = *read;
    if (out.value < bounds.low || out.value > bounds.high) {
      map->error(*value, fmt::format("'{}': {} is outside {} … {}", map->path_of("value"), shown(out.value),
                                     shown(bounds.low), shown(bounds.high)));
    }
  }
  read_provenance(*map, out);
}

template <class Enum>
void read_sourced(config::Mapping& parent, std::string_view key, Sourced<Enum>& out, const Words& words) {
  std::optional<config::Mapping> map = sourced_mapping(parent, key);
  if (!map) {
    return;
  }
  if (map->find("value") == nullptr) {
    report_missing(*map, "value");
  } else {
    out.value = static_cast<Enum>(map->choice("value", words.allowed, 0));
  }
  read_provenance(*map, out);
}

/// The same for a key that may be left out: `out` then keeps its value, and says that it is the default. `limits` is
/// a Bounds or a Words.
template <class T, class Limits>
void read_sourced_or_default(config::Mapping& parent, std::string_view key, Sourced<T>& out, const Limits& limits) {
  if (parent.find(key) != nullptr) {
    read_sourced(parent, key, out, limits);
  } else {
    out.source = "default";
  }
}

template <class T, class B>
void read_if_there(config::Mapping& mapping, std::string_view key, std::optional<Sourced<T>>& out, const B& bounds) {
  if (mapping.find(key) != nullptr) {
    read_sourced(mapping, key, out.emplace(), bounds);
  }
}

/// A mapping within the mapping that a file may leave out; `fill` reads its keys.
template <class T, class Fill>
std::optional<T> read_group(config::Mapping& parent, std::string_view key, const Fill& fill) {
  const config::Node* node = parent.find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  T out;
  config::Mapping map(*node, parent.path_of(key), parent.diagnostics());
  fill(map, out);
  map.finish();
  return out;
}

}  // namespace ulysim::spec

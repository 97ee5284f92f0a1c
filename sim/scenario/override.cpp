#include "sim/scenario/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace ulysim::scenario {
namespace {

using config::Node;

constexpr std::size_t kMostSteps = 16;

/// From a place within the value to one within the whole text.
Location moved(const Location& value, const Location& text, std::size_t before) {
  return {.file = text.file, .line = text.line, .column = value.column + static_cast<int>(before)};
}

void relocate(Node& node, const Location& text, std::size_t before) {
  node.where = moved(node.where, text, before);
  for (Node& item : node.items) {
    relocate(item, text, before);
  }
  for (config::Entry& entry : node.entries) {
    entry.where = moved(entry.where, text, before);
    relocate(entry.value, text, before);
  }
}

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> steps;
  while (true) {
    const std::size_t dot = path.find('.');
    steps.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) {
      return steps;
    }
    path.remove_prefix(dot + 1);
  }
}

std::optional<std::size_t> index_of(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The child of `node` that `step` names, made when missing; nullptr with a sentence in `why` when it cannot be.
Node* child(Node& node, const std::string& step, const Location& at, std::string& why) {
  if (node.kind == Node::Kind::sequence) {
    const auto index = index_of(step);
    if (!index || *index > node.items.size()) {
      why = fmt::format("'{}' is no index of a list of {}", step, node.items.size());
      return nullptr;
    }
    if (*index == node.items.size()) {
      node.items.push_back({.where = at});
    }
    return &node.items[*index];
  }
  if (node.kind == Node::Kind::scalar) {
    why = fmt::format("'{}' stands in a single value", step);
    return nullptr;
  }
  node.kind = Node::Kind::mapping;
  const auto found = std::find_if(node.entries.begin(), node.entries.end(),
                                  [&](const config::Entry& entry) { return entry.key == step; });
  if (found != node.entries.end()) {
    return &found->value;
  }
  node.entries.push_back({.key = step, .where = at, .value = {.where = at}});
  return &node.entries.back().value;
}

bool is_path(const std::vector<std::string>& steps) {
  return steps.size() <= kMostSteps &&
         std::none_of(steps.begin(), steps.end(), [](const std::string& step) { return step.empty(); });
}

void apply(Node& document, const Override& change, Diagnostics& diagnostics) {
  const std::string_view text = change.text;
  const Location at{.file = change.origin, .line = change.number, .column = 1};
  const std::size_t equals = text.find('=');
  const std::string_view path = text.substr(0, equals);
  if (equals == std::string_view::npos || !is_path(split(path))) {
    diagnostics.error(at, fmt::format("'{}' is not of the form key=value (like training.zero=2)", text.substr(0, 60)));
    return;
  }
  Node value;
  try {
    value = config::parse_yaml(text.substr(equals + 1), change.origin);
  } catch (const InputError& error) {
    for (const Diagnostic& found : error.diagnostics()) {
      diagnostics.error(moved(found.where, at, equals + 1), found.message);
    }
    return;
  }
  if (value.kind == Node::Kind::null) {
    diagnostics.error(at, fmt::format("'{}' has no value", path));
    return;
  }
  relocate(value, at, equals + 1);
  set_value(document, path, at, std::move(value), diagnostics);
}

}  // namespace

void set_value(Node& document, std::string_view path, const Location& path_at, Node value, Diagnostics& diagnostics) {
  const std::vector<std::string> steps = split(path);
  if (!is_path(steps)) {
    diagnostics.error(path_at, fmt::format("'{}' is no key (like training.zero)", path.substr(0, 60)));
    return;
  }
  Node* target = &document;
  std::string why;
  for (const std::string& step : steps) {
    target = child(*target, step, path_at, why);
    if (target == nullptr) {
      diagnostics.error(path_at, fmt::format("'{}': {}", path, why));
      return;
    }
  }
  *target = std::move(value);
}

void apply_overrides(Node& document, const std::vector<Override>& overrides, Diagnostics& diagnostics) {
  for (const Override& change : overrides) {
    apply(document, change, diagnostics);
  }
}

}  // namespace ulysim::scenario

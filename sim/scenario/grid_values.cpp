#include "sim/scenario/grid_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/format.h"
#include "sim/base/parse_quantity.h"
#include "sim/scenario/section.h"

namespace ulysim::scenario {
namespace {

using config::Node;

constexpr double kLargestCount = 9.0e15;  // a double is exact up to 2^53

/// "100Gb/s": a number, and what stands behind it. A count ("32Ki") has its size in the number and no unit.
struct Number {
  double value{};
  std::string unit{};
  bool whole{};  ///< a count
};

std::optional<Number> number_of(const std::string& text) {
  if (const auto count = parse_count(text); const auto* value = std::get_if<std::int64_t>(&count)) {
    return Number{.value = static_cast<double>(*value), .whole = true};
  }
  const std::size_t end = std::min(text.find_first_not_of("0123456789._"), text.size());
  const auto parsed = parse_number(std::string_view(text).substr(0, end));
  const auto* value = std::get_if<double>(&parsed);
  return value == nullptr ? std::nullopt : std::optional(Number{.value = *value, .unit = text.substr(end)});
}

/// A range, read and checked: every value is `from + i · step`, or `factor` times the one before.
struct Range {
  Number from{};
  double to{};
  double step{};
  double factor{1.0};
};

std::optional<Range> read_range(const Node& node, const std::string& path, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  Section section(node, path, {"range"}, diagnostics);
  const auto number = [&](const char* key) -> std::optional<Number> {
    const auto text = section.maybe<std::string>(key);
    if (!text) {
      return std::nullopt;
    }
    auto read = number_of(*text);
    if (!read || !(read->value > 0.0) || read->value > kLargestCount) {
      section.error(key, fmt::format("'{}' is no number above 0 (like 32Ki, 0.5 or 100Gb/s)", *text));
    }
    return read;
  };
  const auto from = number("from");
  const auto to = number("to");
  const auto step = number("step");
  const auto factor = number("factor");
  section.finish();
  if (diagnostics.list().size() != before) {
    return std::nullopt;
  }
  const auto refuse = [&](std::string message) {
    diagnostics.error(node.where, fmt::format("'{}': {}", path, message));
    return std::nullopt;
  };
  if (!from || !to || step.has_value() == factor.has_value()) {
    return refuse("a range has 'from', 'to' and either 'step' or 'factor'");
  }
  if (from->unit != to->unit || (step && step->unit != from->unit)) {
    return refuse("the numbers of a range have one unit");
  }
  if (factor && (!factor->unit.empty() || !(factor->value > 1.0))) {
    return refuse("'factor' is a plain number above 1");
  }
  if (to->value < from->value) {
    return refuse("'to' is below 'from'");
  }
  Range range{.from = *from, .to = to->value, .step = step ? step->value : 0.0, .factor = factor ? factor->value : 1.0};
  range.from.whole = from->whole && to->whole && (!step || step->whole);
  return range;
}

std::vector<Node> expand(const Range& range, const Location& where) {
  // Rounding in the last bits must not lose the end.
  const double end = range.to * (1.0 + 1e-12);
  std::vector<Node> values;
  double exact = range.from.value;
  for (std::size_t i = 1; exact <= end; ++i) {
    const std::string text =
        range.from.whole ? fmt::format("{}", std::llround(exact)) : fmt::format("{:.12g}{}", exact, range.from.unit);
    if (values.empty() || values.back().text != text) {  // a small factor may round to the same count twice
      values.push_back({.kind = Node::Kind::scalar, .where = where, .text = text});
    }
    exact = range.step > 0.0 ? range.from.value + static_cast<double>(i) * range.step : exact * range.factor;
  }
  return values;
}

/// How many values `expand` would make, without making them.
double count_of(const Range& range, double most) {
  if (range.step > 0.0) {
    return std::floor((range.to - range.from.value) / range.step) + 1.0;
  }
  double count = 0.0;
  for (double value = range.from.value; value <= range.to && count <= most; value *= range.factor) {
    count += 1.0;
  }
  return count;
}

bool is_too_long(const Range& range, const std::string& path, std::size_t most, const Location& where,
                 Diagnostics& diagnostics) {
  const auto limit = static_cast<double>(most);
  const double count = count_of(range, limit);
  if (count <= limit) {
    return false;
  }
  const std::string most_text = human_count(static_cast<std::int64_t>(most));
  diagnostics.error(where,
                    fmt::format("'{}': {} values; a sweep has at most {} simulations", path,
                                range.step > 0.0 ? human_count(std::llround(count)) : "over " + most_text, most_text));
  return true;
}

}  // namespace

std::vector<NamedValue> axis_values(const Node& node, const std::string& path, std::size_t most,
                                    Diagnostics& diagnostics) {
  std::vector<NamedValue> values;
  const auto add_all = [&](const std::vector<Node>& nodes) {
    for (const Node& value : nodes) {
      values.push_back({value_name(value), value});
    }
  };
  const bool is_range = std::any_of(node.entries.begin(), node.entries.end(),
                                    [](const config::Entry& entry) { return find_key("range", entry.key) != nullptr; });
  if (is_range) {
    const auto range = read_range(node, path, diagnostics);
    if (range && !is_too_long(*range, path, most, node.where, diagnostics)) {
      add_all(expand(*range, node.where));
    }
    return values;
  }
  if (node.kind != Node::Kind::sequence && node.kind != Node::Kind::mapping) {
    diagnostics.error(node.where, fmt::format("'{}': expected a list of values, or a range like "
                                              "{{from: 32Ki, to: 4Mi, factor: 2}}",
                                              path));
    return values;
  }
  add_all(node.items);
  for (const config::Entry& entry : node.entries) {
    values.push_back({entry.key, entry.value});
  }
  if (values.empty()) {
    diagnostics.error(node.where, fmt::format("'{}': at least one value is needed", path));
  }
  return values;
}

std::string flow_text(const Node& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return node.quoted ? fmt::format("'{}'", node.text) : node.text;
    case Node::Kind::sequence:
      for (const Node& item : node.items) {
        parts.push_back(flow_text(item));
      }
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case Node::Kind::mapping:
      break;
  }
  for (const config::Entry& entry : node.entries) {
    parts.push_back(fmt::format("{}: {}", entry.key, flow_text(entry.value)));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string value_name(const Node& node) {
  if (node.kind != Node::Kind::scalar) {
    return flow_text(node);
  }
  const auto count = parse_count(node.text);
  const auto* value = std::get_if<std::int64_t>(&count);
  return value != nullptr && !node.quoted ? fmt::to_string(*value) : node.text;
}

}  // namespace ulysim::scenario

#include "sim/study/validate_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace ulysim::study {
namespace {

using config::Node;

constexpr std::string_view kOrigin = "measurement";

/// Where the n-th override comes from.
struct Place {
  Location key{};
  Location value{};
};

/// A document as overrides over an empty scenario, one a node, so that the loader's messages lead back to where each
/// node stands: the loader reads files and text, and a row's scenario is neither.
class Flattened {
 public:
  void add(const Node& node, const std::string& path, const Location& key) {
    switch (node.kind) {
      case Node::Kind::null:
        return;  // not there
      case Node::Kind::scalar:
        set(path, scalar(node), {.key = key, .value = node.where});
        return;
      case Node::Kind::sequence:
        set(path, "[]", {.key = key, .value = node.where});
        for (std::size_t i = 0; i < node.items.size(); ++i) {
          add(node.items[i], fmt::format("{}.{}", path, i), node.items[i].where);
        }
        return;
      case Node::Kind::mapping:
        set(path, "{}", {.key = key, .value = node.where});
        add_entries(node, path + '.');
        return;
    }
  }

  void add_entries(const Node& mapping, const std::string& prefix) {
    for (const config::Entry& entry : mapping.entries) {
      if (entry.key.empty() || entry.key.find_first_of(".=") != std::string::npos) {
        wrong_.error(entry.where, fmt::format("unknown key '{}'", entry.key));
      } else {
        add(entry.value, prefix + entry.key, entry.where);
      }
    }
  }

  [[nodiscard]] const std::vector<scenario::Override>& overrides() const { return overrides_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] const Diagnostics& wrong() const { return wrong_; }

 private:
  void set(const std::string& path, const std::string& value, Place place) {
    places_.push_back(std::move(place));
    overrides_.push_back({.text = fmt::format("{}={}", path, value),
                          .origin = std::string(kOrigin),
                          .number = static_cast<int>(places_.size())});
  }

  static std::string scalar(const Node& node) {
    const bool folded = node.text.find('\n') != std::string::npos;
    if (!node.quoted && !folded) {
      return node.text;
    }
    std::string out = "\"";
    for (const char c : node.text) {
      if (c == '\n') {
        out += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') {
        out += '\\';
      }
      out += c;
    }
    return out + '"';
  }

  std::vector<scenario::Override> overrides_;
  std::vector<Place> places_;
  Diagnostics wrong_;
};

/// The override parser counts columns from its text's begin, so the key stands at 1 and the value behind it.
Diagnostic led_back(Diagnostic found, const Flattened& flat, const RowScenario& row) {
  const auto index = static_cast<std::size_t>(std::max(found.where.line, 1) - 1);
  if (found.where.file == kOrigin && index < flat.places().size()) {
    const Place& place = flat.places()[index];
    found.where = found.where.column <= 1 ? place.key : place.value;
  } else if (found.where.file == row.path) {
    found.where = row.where;
  }
  constexpr std::string_view kPlan = "plans[0]";
  if (const std::size_t at = found.message.find(kPlan); at != std::string::npos) {
    found.message.replace(at, kPlan.size(), row.path + ".plan");
  }
  return found;
}

}  // namespace

Node laid_over(Node base, const Node& over) {
  if (base.kind != Node::Kind::mapping || over.kind != Node::Kind::mapping) {
    return over;
  }
  for (const config::Entry& entry : over.entries) {
    const auto found = std::find_if(base.entries.begin(), base.entries.end(),
                                    [&](const config::Entry& present) { return present.key == entry.key; });
    if (found == base.entries.end()) {
      base.entries.push_back(entry);
    } else {
      found->value = laid_over(std::move(found->value), entry.value);
    }
  }
  return base;
}

scenario::Scenario row_scenario(const RowScenario& row, const std::filesystem::path& data) {
  Flattened flat;
  flat.add_entries(row.fragment, "");
  Node plans{.kind = Node::Kind::sequence, .where = row.where};
  plans.items.push_back(row.plan != nullptr ? *row.plan : Node{.kind = Node::Kind::mapping, .where = row.where});
  flat.add(plans, "plans", row.where);
  flat.wrong().throw_if_any();
  try {
    return scenario::parse_scenario({.text = "{}", .file = row.path, .folder = row.folder}, data,
                                    {.overrides = flat.overrides()});
  } catch (const InputError& error) {
    std::vector<Diagnostic> found;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      found.push_back(led_back(diagnostic, flat, row));
    }
    throw InputError(std::move(found));
  }
}

}  // namespace ulysim::study

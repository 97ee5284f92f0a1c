#include "tests/cases/case_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/mapping.h"
#include "sim/study/validate_scenario.h"

namespace ulysim::cases {
namespace {

using config::Mapping;
using config::Node;

template <class T>
std::vector<T> list_of(Mapping& from, const std::string& key) {
  std::vector<T> out;
  for (const Node* item : from.items(key)) {
    if (auto value = config::read<T>(*item, from.path_of(key), from.diagnostics())) {
      out.push_back(std::move(*value));
    }
  }
  return out;
}

Run read_run(const Node& node, const std::string& path, const Node& base, Diagnostics& diagnostics) {
  Mapping run(node, path, diagnostics);
  const Node* set = run.find("set");
  const Node* plan = run.find("plan");
  run.finish();
  return {.fragment = set != nullptr ? study::laid_over(base, *set) : base,
          .plan = plan != nullptr ? *plan : Node{.kind = Node::Kind::mapping, .where = node.where}};
}

Expectation read_expectation(const Node& node, const std::string& path, const Case& owner, Diagnostics& diagnostics) {
  Mapping from(node, path, diagnostics);
  Expectation out{.run = from.required<std::string>("run"), .figure = from.optional<std::string>("figure", {})};
  out.over = from.maybe<std::string>("over");
  out.minus = from.maybe<std::string>("minus");
  const auto between = list_of<double>(from, "between");
  if (between.size() == 2 && between[0] <= between[1]) {
    out.between = {between[0], between[1]};
  } else if (!between.empty()) {
    from.error("between", "takes two numbers, the lower one first");
  }
  if (out.between.has_value() == out.figure.empty()) {
    from.error("figure", "and 'between' go together");
  }
  out.fit = list_of<std::string>(from, "fit");
  out.limit = from.maybe<std::string>("limit");
  out.cannot = from.maybe<std::string>("cannot");
  out.refused = from.maybe<std::string>("refused");
  if (from.find("ulysses_degrees") != nullptr) {
    out.ulysses_degrees = list_of<std::int64_t>(from, "ulysses_degrees");
  }
  out.misses = from.maybe<std::string>("misses");
  if (out.figure.empty() && out.fit.empty() && !out.limit && !out.cannot && !out.refused && !out.ulysses_degrees) {
    from.error(node, "expects nothing");
  }
  for (const std::string& run : {out.run, out.over.value_or(out.run), out.minus.value_or(out.run)}) {
    if (!owner.runs.contains(run)) {
      from.error(node, fmt::format("no run is called '{}'", run));
    }
  }
  from.finish();
  return out;
}

Case read_case(const Node& node, const std::string& path, Diagnostics& diagnostics) {
  Mapping from(node, path, diagnostics);
  Case out{.id = from.required<std::string>("id"),
           .source = from.required<std::string>("source"),
           .says = from.required<std::string>("says")};
  const Node* base = from.find("base");
  const Node none{.kind = Node::Kind::mapping, .where = node.where};
  const Node* runs = from.find("runs");
  if (runs == nullptr || runs->kind != Node::Kind::mapping) {
    from.error("runs", "must be set-ups by name");
  } else {
    for (const config::Entry& entry : runs->entries) {
      out.runs[entry.key] =
          read_run(entry.value, path + ".runs." + entry.key, base != nullptr ? *base : none, diagnostics);
    }
  }
  const auto expect = from.items("expect");
  for (std::size_t i = 0; i < expect.size(); ++i) {
    out.expect.push_back(read_expectation(*expect[i], fmt::format("{}.expect[{}]", path, i), out, diagnostics));
  }
  if (out.expect.empty()) {
    from.error("expect", "missing");
  }
  from.finish();
  return out;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.id;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  const Node document = config::load_file(path);
  Diagnostics diagnostics;
  Mapping root(document, "", diagnostics);
  std::vector<Case> out;
  const auto cases = root.items("cases");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    out.push_back(read_case(*cases[i], fmt::format("cases[{}]", i), diagnostics));
  }
  root.finish();
  diagnostics.throw_if_any();
  return out;
}

}  // namespace ulysim::cases

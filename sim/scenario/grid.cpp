#include "sim/scenario/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/format.h"
#include "sim/scenario/grid_check.h"
#include "sim/scenario/grid_values.h"
#include "sim/scenario/override.h"
#include "sim/scenario/read.h"
#include "sim/scenario/resources.h"
#include "sim/scenario/section.h"

namespace ulysim::scenario {
namespace {

namespace fs = std::filesystem;
using config::Node;

constexpr std::size_t kLongestName = 100;

/// "ulysses=all,zero=2,optimizer.offload=cpu" of {ulysses: all, zero: 2, optimizer: {offload: cpu}}.
void add_keys(const Node& node, const std::string& prefix, std::vector<std::string>& parts) {
  for (const config::Entry& entry : node.entries) {
    if (entry.value.kind == Node::Kind::mapping) {
      add_keys(entry.value, prefix + entry.key + '.', parts);
    } else {
      parts.push_back(fmt::format("{}{}={}", prefix, entry.key, value_name(entry.value)));
    }
  }
}

std::string plan_name(const Node& plan) {
  if (const Node* own = plan.find("name"); own != nullptr && !own->text.empty()) {
    return own->text.substr(0, kLongestName);
  }
  std::vector<std::string> parts;
  add_keys(plan, "", parts);
  return parts.empty() ? "data=all" : fmt::format("{}", fmt::join(parts, ",")).substr(0, kLongestName);
}

void name_plans(Grid& grid, const Location& missing_at, Diagnostics& diagnostics) {
  const Node* plans = grid.base.find("plans");
  if (plans == nullptr || plans->kind != Node::Kind::sequence || plans->items.empty()) {
    diagnostics.error(plans == nullptr ? missing_at : plans->where,
                      "'plans': a list of at least one plan is needed, here or in the base");
    return;
  }
  for (const Node& plan : plans->items) {
    std::string name = plan_name(plan);
    if (std::find(grid.plans.begin(), grid.plans.end(), name) != grid.plans.end()) {
      diagnostics.error(plan.where, fmt::format("'plans[{}]': there is a plan '{}' already; drop one, or give it a "
                                                "'name'",
                                                grid.plans.size(), name));
    }
    grid.plans.push_back(std::move(name));
  }
}

void read_axes(const Node& node, Grid& grid, Diagnostics& diagnostics) {
  for (const config::Entry& entry : node.entries) {
    const std::string path = "axes." + entry.key;
    if (entry.key == "plans" || entry.key == "scenario") {
      diagnostics.error(entry.where, fmt::format("'{}': is the same at every point", path));
      continue;
    }
    Axis axis{.key = entry.key, .key_at = entry.where};
    std::set<std::string> names;
    for (NamedValue& value : axis_values(entry.value, path, kMostSimulations, diagnostics)) {
      if (!names.insert(value.name).second) {
        diagnostics.error(value.value.where, fmt::format("'{}': '{}' stands twice", path, value.name));
      }
      axis.names.push_back(std::move(value.name));
      axis.values.push_back(std::move(value.value));
    }
    grid.axes.push_back(std::move(axis));
  }
}

void check_size(const Grid& grid, const Location& where, Diagnostics& diagnostics) {
  double simulations = static_cast<double>(std::max<std::size_t>(grid.plans.size(), 1));
  std::vector<std::string> factors;
  for (const Axis& axis : grid.axes) {
    simulations *= static_cast<double>(axis.values.size());
    factors.push_back(human_count(static_cast<std::int64_t>(axis.values.size())));
  }
  if (simulations > static_cast<double>(kMostSimulations)) {
    diagnostics.error(
        where, fmt::format("'axes': {} values with {} plans are {:.15g} simulations; a sweep has at most {}",
                           fmt::join(factors, " × "), grid.plans.size(), simulations, human_count(kMostSimulations)));
  }
}

/// The base: a scenario that stands here, or the path of one, counted from the sweep's own folder.
void read_base(const Node* node, const fs::path& folder, Grid& grid, Diagnostics& diagnostics, const Location& where) {
  grid.folder = folder;
  if (node == nullptr) {
    diagnostics.error(where, "missing key 'base' (a scenario, or the path of one)");
  } else if (node->kind == Node::Kind::scalar) {
    const fs::path file = folder / node->text;
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) {
      diagnostics.error(node->where, fmt::format("'base': there is no file '{}'", file.string()));
      return;
    }
    try {
      grid.base = config::load_file(file);
      grid.folder = file.parent_path();
    } catch (const InputError& error) {
      add_all(error, diagnostics);
    }
  } else {
    grid.base = *node;
  }
}

}  // namespace

std::size_t Grid::points() const {
  std::size_t product = 1;
  for (const Axis& axis : axes) {
    product *= axis.values.size();
  }
  return product;
}

std::vector<std::size_t> Grid::at(std::size_t point) const {
  std::vector<std::size_t> indices(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    indices[a] = point % axes[a].values.size();
    point /= axes[a].values.size();
  }
  return indices;
}

Grid load_grid(const fs::path& path, const fs::path& data, const LoadOptions& options) {
  const Node root = config::load_file(path);
  Diagnostics diagnostics;
  Section section(root, "", {"sweep"}, diagnostics);
  Grid grid;
  grid.name = section.maybe<std::string>("sweep").value_or(path.stem().string());
  read_base(section.find("base"), path.parent_path(), grid, diagnostics, root.where);
  const Node* plans = section.find("plans");
  const Node* axes = section.find("axes");
  if (axes == nullptr || axes->kind != Node::Kind::mapping || axes->entries.empty()) {
    diagnostics.error(axes == nullptr ? root.where : axes->where,
                      "'axes': at least one key of the scenario and its values are needed");
  } else {
    read_axes(*axes, grid, diagnostics);
  }
  section.finish();
  diagnostics.throw_if_any();
  if (plans != nullptr) {
    set_value(grid.base, "plans", plans->where, *plans, diagnostics);
  }
  apply_overrides(grid.base, options.overrides, diagnostics);
  name_plans(grid, root.where, diagnostics);
  check_size(grid, axes->where, diagnostics);
  diagnostics.throw_if_any();
  check_combinations(grid, data, diagnostics);
  diagnostics.throw_if_any();
  return grid;
}

Scenario scenario_at(const Grid& grid, std::size_t point, std::size_t plan, Library& library) {
  Node document = grid.base;
  Diagnostics diagnostics;
  const std::vector<std::size_t> at = grid.at(point);
  for (std::size_t a = 0; a < at.size(); ++a) {
    const Axis& axis = grid.axes[a];
    set_value(document, axis.key, axis.key_at, axis.values[at[a]], diagnostics);
    if (document.find("plans")->items.size() != grid.plans.size()) {
      diagnostics.error(axis.key_at,
                        fmt::format("'axes.{}': the last plan is plans.{}", axis.key, grid.plans.size() - 1));
    }
  }
  diagnostics.throw_if_any();
  return read_scenario(document, {.folder = grid.folder, .fallback_name = grid.name, .only_plan = plan}, library);
}

std::string fingerprint(const Grid& grid) {
  std::string text = fmt::format("{}\n{}\n", grid.name, flow_text(grid.base));
  for (const Axis& axis : grid.axes) {
    text += fmt::format("{}:\n", axis.key);
    for (const Node& value : axis.values) {
      text += fmt::format("  {}\n", flow_text(value));
    }
  }
  return text;
}

}  // namespace ulysim::scenario

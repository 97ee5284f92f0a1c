#include "tools/study_input.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "hw_models/spec/load.h"
#include "tools/data_folder.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;
using scenario::Override;

void add_plan(const std::string& text, std::size_t index, std::vector<Override>& overrides) {
  const int number = static_cast<int>(index) + 1;
  if (text.starts_with('{')) {
    overrides.push_back({fmt::format("plans.{}={}", index, text), "--plan", number});
    return;
  }
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    overrides.push_back({fmt::format("plans.{}.{}", index, part), "--plan", number});
    if (comma == std::string_view::npos) {
      return;
    }
    rest.remove_prefix(comma + 1);
  }
}

/// Without --plan: the three ways to split one sequence over all GPUs, side by side.
std::vector<std::string> usual_plans(const Arguments& arguments, const fs::path& data) {
  std::int64_t gpus = 1;
  try {
    gpus = spec::Catalog(data / "catalog").load_node(*arguments.node).gpus;
  } catch (const InputError&) {
    // Reported with its place when the scenario is read.
  }
  const std::string nodes = arguments.nodes.value_or("1");
  const bool plain = !nodes.empty() && nodes.size() < 6 && nodes.find_first_not_of("0123456789") == std::string::npos;
  gpus *= plain ? std::stoll(nodes) : 1;
  if (gpus <= 1) {
    return {"{}"};
  }
  return {fmt::format("ulysses={}", gpus), fmt::format("ring={}", gpus), fmt::format("tensor={}", gpus)};
}

std::vector<Override> spelled_out(const Arguments& arguments, const fs::path& data) {
  std::vector<Override> overrides;
  const auto add = [&](const char* key, const char* origin, const std::optional<std::string>& value) {
    if (value) {
      overrides.push_back({fmt::format("{}={}", key, *value), origin, 1});
    }
  };
  add("model", "--model", arguments.model);
  add("cluster.node", "--node", arguments.node);
  add("cluster.nodes", "--nodes", arguments.nodes);
  add("training.sequence_length", "--seq", arguments.seq);
  overrides.push_back({"plans=[]", "--plan", 1});
  const std::vector<std::string> plans = arguments.plans.empty() ? usual_plans(arguments, data) : arguments.plans;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    add_plan(plans[i], i, overrides);
  }
  return overrides;
}

}  // namespace

const std::string& only_positional(const Arguments& arguments, const std::string& what) {
  if (arguments.positional.size() != 1) {
    throw UsageError(fmt::format("expected one {}, found {}", what, arguments.positional.size()));
  }
  return arguments.positional.front();
}

std::vector<Override> set_overrides(const Arguments& arguments) {
  std::vector<Override> overrides;
  for (std::size_t i = 0; i < arguments.set.size(); ++i) {
    overrides.push_back({.text = arguments.set[i], .number = static_cast<int>(i) + 1});
  }
  return overrides;
}

scenario::Scenario load_study(const Arguments& arguments) {
  const bool from_file = !arguments.positional.empty();
  const bool spelled =
      arguments.model || arguments.node || arguments.nodes || arguments.seq || !arguments.plans.empty();
  if (from_file && spelled) {
    throw UsageError("--model, --node, --nodes, --seq and --plan stand instead of SCENARIO; use --set to change one");
  }
  if (!from_file && !(arguments.model && arguments.node && arguments.seq)) {
    throw UsageError("give a SCENARIO file, or --model, --node and --seq");
  }
  const fs::path data = find_data_directory();
  scenario::LoadOptions options;
  if (!from_file) {
    options.overrides = spelled_out(arguments, data);
  }
  for (Override& change : set_overrides(arguments)) {
    options.overrides.push_back(std::move(change));
  }
  if (from_file) {
    return scenario::load_scenario(only_positional(arguments, "SCENARIO"), data, options);
  }
  return scenario::parse_scenario({.text = "{}", .file = "command line"}, data, options);
}

}  // namespace ulysim::tools

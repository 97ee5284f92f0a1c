#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/config/mapping.h"
#include "sim/config/write_yaml.h"
#include "sim/scenario/library.h"
#include "sim/scenario/override.h"
#include "sim/scenario/plans.h"
#include "sim/scenario/read.h"
#include "sim/scenario/resources.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/section.h"
#include "sim/scenario/training.h"

namespace ulysim::scenario {
namespace {

namespace fs = std::filesystem;
using config::Node;

constexpr std::size_t kMostPlans = 1000;

/// Reads frameworks by name, each once: a mistake in one is told once, however many plans use it.
class Frameworks {
 public:
  explicit Frameworks(Library& library) : library_(&library) {}

  spec::Framework get(const Training& training, Diagnostics& diagnostics) {
    const auto [entry, added] = loaded_.try_emplace(training.framework);
    if (added) {
      try {
        entry->second = library_->framework(training.framework, training.framework_at);
      } catch (const InputError& error) {
        add_all(error, diagnostics);
      }
    }
    return entry->second;
  }

 private:
  Library* library_;
  std::map<std::string, spec::Framework> loaded_;
};

void read_plans(Section& section, const Source& source, const Training& training, const PlanContext& context,
                Scenario& scenario) {
  const auto items = section.items("plans");
  if (items.empty() && section.diagnostics().empty()) {
    section.error("plans", "at least one plan is needed ({} is pure data parallel)");
  }
  if (items.size() > kMostPlans) {
    section.error("plans", fmt::format("{} plans; at most {}", items.size(), kMostPlans));
    return;
  }
  std::map<std::string, std::size_t> named;
  const std::size_t first = source.only_plan.value_or(0);
  const std::size_t end = source.only_plan ? std::min(first + 1, items.size()) : items.size();
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t before = section.diagnostics().list().size();
    PlanEntry entry = read_plan(*items[i], fmt::format("plans[{}]", i), training, context, section.diagnostics());
    if (section.diagnostics().list().size() == before) {
      const auto [earlier, added] = named.try_emplace(entry.plan.name, i);
      if (!added) {
        section.diagnostics().error(
            items[i]->where, fmt::format("'plans[{}]': is called '{}' like plans[{}]; drop one, or give it a 'name'", i,
                                         entry.plan.name, earlier->second));
      }
    }
    scenario.plans.push_back(std::move(entry));
  }
}

/// The value of `key`, or an empty mapping in its place.
const Node& mapping_or(const Node* node, const Node& empty) {
  return node != nullptr ? *node : empty;
}

/// nullptr when it cannot be read, which was reported.
const workload::Transformer* read_model(Section& section, const fs::path& folder, Library& library,
                                        Scenario& scenario) {
  const Node* node = section.find("model");
  if (node == nullptr) {
    section.error("model", "missing (a name that 'list models' shows, or a path to a config.json)");
    return nullptr;
  }
  const auto name = section.maybe<std::string>("model");
  if (!name) {
    return nullptr;
  }
  scenario.model_name = *name;
  try {
    return &library.model(*name, node->where, folder);
  } catch (const InputError& error) {
    add_all(error, section.diagnostics());
    return nullptr;
  }
}

Scenario resolve(Node root, const Source& source, const fs::path& data, const LoadOptions& options) {
  Diagnostics diagnostics;
  apply_overrides(root, options.overrides, diagnostics);
  diagnostics.throw_if_any();
  Library library(data);
  Scenario scenario = read_scenario(root, source, library);
  if (root.find("scenario") == nullptr) {
    // The name of the file, which the text alone would not know.
    const Node name{.kind = Node::Kind::scalar, .text = scenario.name, .quoted = true};
    root.entries.insert(root.entries.begin(), {.key = "scenario", .value = name});
  }
  scenario.text = config::write_yaml(root);
  return scenario;
}

}  // namespace

Scenario read_scenario(const Node& document, const Source& source, Library& library) {
  Diagnostics diagnostics;
  Section section(document, "", {"scenario"}, diagnostics);
  const Node empty{.kind = Node::Kind::mapping, .where = document.where};
  Scenario scenario;
  scenario.name = section.maybe<std::string>("scenario").value_or(source.fallback_name);
  const workload::Transformer* model = read_model(section, source.folder, library, scenario);
  const auto cluster = read_cluster(mapping_or(section.find("cluster"), empty), library, diagnostics);
  Training training;
  Section training_section(mapping_or(section.find("training"), empty), "training", {"training"}, diagnostics);
  training.framework_at = training_section.where();
  read_training(training_section, training);
  training_section.finish();
  Frameworks frameworks(library);
  read_plans(section, source, training,
             {.gpus = cluster ? cluster->gpus : 0,
              .model = model,
              .framework = [&](const Training& t, Diagnostics& d) { return frameworks.get(t, d); }},
             scenario);
  section.finish();
  if (cluster) {
    try {
      scenario.kernels = library.kernels(cluster->gpu);
    } catch (const InputError& error) {
      add_all(error, diagnostics);
    }
  }
  diagnostics.throw_if_any();
  scenario.model = *model;
  scenario.cluster = *cluster;
  scenario.total_tokens = training.total_tokens;
  scenario.price_per_gpu_hour = cluster->price_per_gpu_hour;
  return scenario;
}

Scenario load_scenario(const fs::path& path, const fs::path& data, const LoadOptions& options) {
  return resolve(config::load_file(path), {.folder = path.parent_path(), .fallback_name = path.stem().string()}, data,
                 options);
}

Scenario parse_scenario(const ScenarioText& text, const fs::path& data, const LoadOptions& options) {
  return resolve(config::parse_yaml(text.text, text.file), {.folder = text.folder, .fallback_name = text.file}, data,
                 options);
}

}  // namespace ulysim::scenario

#include "sim/scenario/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "hw_models/spec/catalog_files.h"
#include "hw_models/topology/topology.h"
#include "sim/base/named.h"
#include "sim/scenario/plans.h"
#include "sim/scenario/section.h"
#include "sim/workload/hf_config.h"

namespace ulysim::scenario {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostNodes = 1'000'000;
constexpr double kMostOversubscription = 1000.0;
constexpr double kMostPrice = 100'000.0;
constexpr Bandwidth kSlowestNic{1e6};
constexpr Bandwidth kFastestNic{1e13};
constexpr Duration kLongestLatency{1'000'000'000'000};  // 1 s

void read_network(Section& outer, spec::Network& network) {
  const config::Node* node = outer.find("network");
  if (node == nullptr) {
    return;
  }
  Section section(*node, outer.path_of("network"), {"network"}, outer.diagnostics());
  std::vector<std::string> known;
  for (const topology::TopologyInfo& info : topology::topologies()) {
    known.push_back(info.name);
  }
  if (const auto name = section.maybe<std::string>("topology")) {
    if (std::find(known.begin(), known.end(), *name) == known.end()) {
      section.error("topology", fmt::format("unknown topology '{}'{}", *name, did_you_mean(*name, known)));
    }
    network.topology = *name;
  }
  network.oversubscription =
      section.number("oversubscription", 1.0, kMostOversubscription).value_or(network.oversubscription);
  network.nic_bandwidth = section.maybe<Bandwidth>("nic_bandwidth");
  if (network.nic_bandwidth && (*network.nic_bandwidth < kSlowestNic || *network.nic_bandwidth > kFastestNic)) {
    section.error("nic_bandwidth", "outside 1MB/s to 10TB/s");
  }
  network.latency = section.maybe<Duration>("latency");
  if (network.latency && *network.latency > kLongestLatency) {
    section.error("latency", "above 1s");
  }
  section.finish();
}

void load_hardware(Section& section, Library& library, spec::Cluster& cluster) {
  const auto name = section.maybe<std::string>("node");
  if (!name) {
    if (section.find("node") == nullptr) {
      section.error("node", "missing (a name that 'list nodes' shows)");
    }
    return;
  }
  try {
    cluster.node = library.node(*name, section.find("node")->where);
    cluster.gpu = library.gpu(cluster.node.gpu_name, section.find("node")->where);
  } catch (const InputError& error) {
    add_all(error, section.diagnostics());
  }
}

}  // namespace

void add_all(const InputError& error, Diagnostics& diagnostics) {
  for (const Diagnostic& found : error.diagnostics()) {
    diagnostics.error(found.where, found.message);
  }
}

std::optional<spec::Cluster> read_cluster(const config::Node& node, Library& library, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  Section section(node, "cluster", {"cluster"}, diagnostics);
  spec::Cluster cluster;
  load_hardware(section, library, cluster);
  cluster.nodes = section.integer("nodes", {1, kMostNodes}).value_or(1);
  const auto used = section.integer("gpus", {1, kMostGpus});
  read_network(section, cluster.network);
  cluster.price_per_gpu_hour = section.number("price_per_gpu_hour", 0.0, kMostPrice);
  section.finish();
  if (diagnostics.list().size() != before) {
    return std::nullopt;
  }
  const std::int64_t per_node = used.value_or(cluster.node.gpus);
  if (per_node > cluster.node.gpus) {
    section.error("gpus",
                  fmt::format("{} of each node, but a {} has {}", per_node, cluster.node.name, cluster.node.gpus));
    return std::nullopt;
  }
  cluster.gpus = per_node * cluster.nodes;
  if (cluster.gpus > kMostGpus) {
    section.error("nodes", fmt::format("{} nodes of {} are {} GPUs; more than {} are not yet supported", cluster.nodes,
                                       per_node, cluster.gpus, kMostGpus));
    return std::nullopt;
  }
  return cluster;
}

std::vector<std::string> model_names(const fs::path& models) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(models, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (fs::exists(it->path() / "config.json", ignored)) {
      names.push_back(it->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<fs::path> find_model_file(const std::string& name, const Location& asked_at, const ModelFolders& folders,
                                        Diagnostics& diagnostics) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) {
    const fs::path path = folders.folder / name;
    std::error_code ignored;
    const fs::path file = fs::is_directory(path, ignored) ? path / "config.json" : path;
    if (!fs::exists(file, ignored)) {
      diagnostics.error(asked_at, fmt::format("'model': there is no file '{}'", file.string()));
      return std::nullopt;
    }
    return file;
  }
  const std::vector<std::string> known = model_names(folders.models);
  if (!spec::is_catalog_name(name) || std::find(known.begin(), known.end(), name) == known.end()) {
    diagnostics.error(asked_at,
                      fmt::format("'model': unknown model '{}'{}", name.substr(0, 100), did_you_mean(name, known)));
    return std::nullopt;
  }
  return folders.models / name / "config.json";
}

std::string not_yet_simulated(const workload::Transformer& model) {
  const auto chunked = [](const workload::LayerSpec& layer) { return layer.chunk.has_value(); };
  if (std::any_of(model.layer_specs.begin(), model.layer_specs.end(), chunked)) {
    return fmt::format("model '{}' has layers of chunked attention, which are not yet supported", model.name);
  }
  return {};
}

std::optional<workload::Transformer> find_model(const std::string& name, const Location& asked_at,
                                                const ModelFolders& folders, Diagnostics& diagnostics) {
  const auto file = find_model_file(name, asked_at, folders, diagnostics);
  if (!file) {
    return std::nullopt;
  }
  try {
    workload::Transformer model = workload::load_hf_config(*file);
    if (const std::string why = not_yet_simulated(model); !why.empty()) {
      diagnostics.error(asked_at, fmt::format("'model': {}", why));
      return std::nullopt;
    }
    return model;
  } catch (const InputError& error) {
    add_all(error, diagnostics);
    return std::nullopt;
  }
}

}  // namespace ulysim::scenario

#include "hw_models/spec/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "hw_models/spec/catalog_files.h"
#include "hw_models/spec/load_framework.h"
#include "hw_models/spec/read_sourced.h"
#include "sim/base/named.h"

namespace ulysim::spec {
namespace {

// Sane bounds: wide enough for any machine of the next decade, narrow enough to catch a wrong prefix.
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr Bounds<Bytes> kGpuMemory{Bytes(kGiB), Bytes(4096 * kGiB)};
constexpr Bounds<Bytes> kHostMemory{Bytes(kGiB), Bytes(262144 * kGiB)};
constexpr Bounds<Bandwidth> kMemoryBandwidth{Bandwidth(1e9), Bandwidth(1e14)};
// Down to a processor's core and a gigabit link: `ulysim calibrate run --backend host` measures those.
constexpr Bounds<Bandwidth> kLinkBandwidth{Bandwidth(1e7), Bandwidth(1e13)};
constexpr Bounds<FlopRate> kFlopRate{FlopRate(1e9), FlopRate(1e18)};
constexpr Bounds<std::int64_t> kSms{1, 4096};
constexpr Bounds<std::int64_t> kPerNode{1, 1024};
constexpr Bounds<double> kPower{10.0, 10'000.0};
constexpr Bounds<double> kEfficiency{0.001, 1.2};
constexpr Bounds<Bytes> kStorage{Bytes(kGiB), Bytes(16'777'216 * kGiB)};
constexpr Bounds<Duration> kLatency{Duration(1000), Duration(10'000'000'000)};  // 1 ns … 10 ms

/// At the mapping, because it takes more than one key to break a relation.
void require(config::Mapping& map, std::string_view key, const std::string& broken) {
  if (!broken.empty()) {
    map.error(key, broken);
  }
}

Transport read_transport(config::Mapping& parent, std::string_view key) {
  Transport out;
  const config::Node* node = parent.find(key);
  if (node == nullptr) {
    report_missing(parent, key);
    return out;
  }
  config::Mapping map(*node, parent.path_of(key), parent.diagnostics());
  read_sourced(map, "all_to_all_efficiency", out.all_to_all_efficiency, kEfficiency);
  read_sourced(map, "ring_efficiency", out.ring_efficiency, kEfficiency);
  read_sourced(map, "p2p_efficiency", out.p2p_efficiency, kEfficiency);
  read_sourced(map, "base_latency", out.base_latency, kLatency);
  read_sourced(map, "step_latency", out.step_latency, kLatency);
  map.finish();
  return out;
}

void read_nvme(config::Mapping& map, Nvme& out) {
  read_sourced(map, "read", out.read, kLinkBandwidth);
  read_sourced(map, "write", out.write, kLinkBandwidth);
  read_sourced(map, "capacity", out.capacity, kStorage);
}

/// Fabric, and the link and transport that belong to it: a node without NVLink names its transport `pcie`.
void read_fabric(config::Mapping& map, Node& node) {
  static const std::array<std::string, 3> fabrics{"nvswitch", "nvlink-pairs", "pcie"};
  if (map.find("fabric") != nullptr) {
    node.fabric = static_cast<NodeFabric>(map.choice("fabric", fabrics, 0));
  }
  if (node.fabric == NodeFabric::pcie) {
    node.nvlink_bandwidth.source = "no NVLink";
    node.nvlink = read_transport(map, "pcie");
  } else {
    read_sourced(map, "nvlink_bandwidth", node.nvlink_bandwidth, kLinkBandwidth);
    node.nvlink = read_transport(map, "nvlink");
  }
}

std::string broken_fabric(const Node& node) {
  if (node.fabric == NodeFabric::nvlink_pairs && node.gpus % 2 != 0) {
    return fmt::format("{} GPUs make no pairs", node.gpus);
  }
  if (node.fabric == NodeFabric::nvswitch || node.gpus_per_pcie_uplink.value == 0) {
    return {};
  }
  const std::int64_t switches = node.gpus / node.gpus_per_pcie_uplink.value;
  if (switches % node.sockets.value != 0) {
    return fmt::format("{} PCIe switches over {} sockets: a GPU's socket is not known", switches, node.sockets.value);
  }
  return {};
}

std::string broken_hosts(const Node& node) {
  if (node.hosts.value > 0 && node.gpus % node.hosts.value == 0) {
    return {};
  }
  return fmt::format("{} hosts do not divide the {} GPUs", node.hosts.value, node.gpus);
}

bool divides_either_way(std::int64_t a, std::int64_t b) {
  return a > 0 && b > 0 && (a % b == 0 || b % a == 0);
}

std::string broken_nics(const Node& node) {
  if (divides_either_way(node.nics.value, node.gpus)) {
    return {};
  }
  return fmt::format("{} NICs and {} GPUs: one must divide the other", node.nics.value, node.gpus);
}

std::string broken_uplinks(const Node& node) {
  if (node.gpus_per_pcie_uplink.value > 0 && node.gpus % node.gpus_per_pcie_uplink.value == 0) {
    return {};
  }
  return fmt::format("{} does not divide the {} GPUs", node.gpus_per_pcie_uplink.value, node.gpus);
}

std::string broken_memory(const Node& node) {
  if (node.host_memory_reserved.value < node.host_memory.value) {
    return {};
  }
  return fmt::format("{} leaves nothing of {}", exact(node.host_memory_reserved.value), exact(node.host_memory.value));
}

/// A profile that extends another is that one, with what it names in its place, whole.
config::Node framework_document(const std::filesystem::path& folder, std::string_view name, const Location& asked_at) {
  config::Node own = load_catalog_file(folder, name, "framework", asked_at);
  const config::Node* base = own.find("extends");
  if (base == nullptr) {
    return own;
  }
  config::Node document = load_catalog_file(folder, base->text, "framework", base->where);
  if (document.find("extends") != nullptr) {
    throw InputError(
        {Diagnostic{.where = base->where, .message = fmt::format("'{}' extends another itself", base->text)}});
  }
  for (config::Entry& entry : own.entries) {
    const auto found = std::find_if(document.entries.begin(), document.entries.end(),
                                    [&](const config::Entry& known) { return known.key == entry.key; });
    if (found != document.entries.end()) {
      *found = std::move(entry);
    } else if (entry.key != "extends") {
      document.entries.push_back(std::move(entry));
    }
  }
  return document;
}

}  // namespace

Gpu Catalog::load_gpu(std::string_view name, const Location& asked_at) const {
  const config::Node document = load_catalog_file(folder_ / "gpus", name, "GPU", asked_at);
  Diagnostics diagnostics;
  config::Mapping map(document, "", diagnostics);
  Gpu gpu{.name = std::string(name), .summary = map.required<std::string>("summary")};
  read_sourced(map, "memory", gpu.memory, kGpuMemory);
  read_sourced(map, "memory_bandwidth", gpu.memory_bandwidth, kMemoryBandwidth);
  read_sourced(map, "sms", gpu.sms, kSms);
  read_sourced(map, "bf16", gpu.bf16, kFlopRate);
  if (map.find("fp8") != nullptr) {
    read_sourced(map, "fp8", gpu.fp8.emplace(), kFlopRate);
  }
  if (map.find("fp4") != nullptr) {
    read_sourced(map, "fp4", gpu.fp4.emplace(), kFlopRate);
  }
  read_sourced_or_default(map, "low_precision_efficiency", gpu.low_precision_efficiency, kEfficiency);
  if (map.find("low_precision_efficiency") == nullptr) {
    // stas00/ml-engineering MAMF, H100 SXM: fp8 reaches 70.9% of its peak, bf16 80.3%.
    gpu.low_precision_efficiency.source = "as the H100 SXM";
    gpu.low_precision_efficiency.spread = 0.1;
  }
  read_sourced_or_default(map, "sustained_efficiency", gpu.sustained_efficiency, kEfficiency);
  if (map.find("bandwidth_efficiency") != nullptr) {
    read_sourced(map, "bandwidth_efficiency", gpu.bandwidth_efficiency.emplace(), kEfficiency);
  }
  if (map.find("power_watts") != nullptr) {
    read_sourced(map, "power_watts", gpu.power_watts.emplace(), kPower);
  }
  gpu.kernel_profile = map.optional<std::string>("kernel_profile", "");
  if (!gpu.kernel_profile.empty() && !is_catalog_name(gpu.kernel_profile)) {
    map.error("kernel_profile", fmt::format("'{}' is no name of a kernel profile", gpu.kernel_profile));
  }
  map.finish();
  diagnostics.throw_if_any();
  return gpu;
}

Node Catalog::load_node(std::string_view name, const Location& asked_at) const {
  const config::Node document = load_catalog_file(folder_ / "nodes", name, "node", asked_at);
  Diagnostics diagnostics;
  config::Mapping map(document, "", diagnostics);
  Node node{.name = std::string(name), .summary = map.required<std::string>("summary")};
  node.gpu_name = map.required<std::string>("gpu");
  if (const config::Node* gpu = map.find("gpu"); gpu != nullptr) {
    const std::vector<std::string> known = gpu_names();
    if (std::find(known.begin(), known.end(), node.gpu_name) == known.end()) {
      map.error(*gpu, fmt::format("unknown GPU '{}'{}", node.gpu_name, did_you_mean(node.gpu_name, known)));
    }
  }
  Sourced<std::int64_t> gpus;
  read_sourced(map, "gpus", gpus, kPerNode);
  node.gpus = gpus.value;
  read_fabric(map, node);
  read_sourced(map, "nics", node.nics, kPerNode);
  read_sourced(map, "nic_bandwidth", node.nic_bandwidth, kLinkBandwidth);
  node.network = read_transport(map, "network");
  read_sourced(map, "pcie_bandwidth", node.pcie_bandwidth, kLinkBandwidth);
  read_sourced(map, "gpus_per_pcie_uplink", node.gpus_per_pcie_uplink, kPerNode);
  read_sourced(map, "pcie_uplink_bandwidth", node.pcie_uplink_bandwidth, kLinkBandwidth);
  read_sourced(map, "pageable_copy_efficiency", node.pageable_copy_efficiency, kEfficiency);
  read_sourced(map, "sockets", node.sockets, kPerNode);
  if (map.find("inter_socket_bandwidth") != nullptr) {
    read_sourced(map, "inter_socket_bandwidth", node.inter_socket_bandwidth.emplace(), kLinkBandwidth);
  }
  if (map.find("hosts") != nullptr) {
    read_sourced(map, "hosts", node.hosts, kPerNode);
  }
  read_sourced(map, "host_memory_bandwidth", node.host_memory_bandwidth, kMemoryBandwidth);
  read_sourced(map, "host_memory", node.host_memory, kHostMemory);
  read_sourced(map, "host_memory_reserved", node.host_memory_reserved, kHostMemory);
  node.nvme = read_group<Nvme>(map, "nvme", read_nvme);
  map.finish();
  if (diagnostics.empty()) {  // relations between values that are all there
    require(map, "nics", broken_nics(node));
    require(map, "gpus_per_pcie_uplink", broken_uplinks(node));
    require(map, "host_memory_reserved", broken_memory(node));
    require(map, "hosts", broken_hosts(node));
    require(map, "fabric", broken_fabric(node));
  }
  diagnostics.throw_if_any();
  return node;
}

Framework Catalog::load_framework(std::string_view name, const Location& asked_at) const {
  const config::Node document = framework_document(folder_ / "frameworks", name, asked_at);
  Diagnostics diagnostics;
  Framework framework = read_framework(document, diagnostics);
  framework.name = name;
  diagnostics.throw_if_any();
  return framework;
}

std::vector<std::string> Catalog::gpu_names() const {
  return catalog_names(folder_ / "gpus");
}
std::vector<std::string> Catalog::node_names() const {
  return catalog_names(folder_ / "nodes");
}
std::vector<std::string> Catalog::framework_names() const {
  return catalog_names(folder_ / "frameworks");
}

}  // namespace ulysim::spec

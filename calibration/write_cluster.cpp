#include <fmt/format.h>

#include <array>

#include "calibration/fit_cluster.h"

namespace ulysim::calibration {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"datasheet", "published", "measured", "assumed"};

std::string scalar(Bytes value) {
  return fmt::format("{}B", value.value());
}
std::string scalar(Bandwidth value) {
  return fmt::format("{:.0f}B/s", value.value());
}
std::string scalar(FlopRate value) {
  return fmt::format("{:.0f}FLOP/s", value.value());
}
std::string scalar(Duration value) {
  return fmt::format("{}ps", value.value());
}
std::string scalar(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string scalar(double value) {
  return fmt::format("{}", value);
}

/// Inside double quotes of YAML.
std::string yaml_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + '"';
}

template <class T>
std::string line(std::string_view name, const spec::Sourced<T>& item) {
  return fmt::format("{}: {{value: {}, source: {}, kind: {}}}\n", name, scalar(item.value), yaml_string(item.source),
                     kKinds.at(static_cast<std::size_t>(item.kind)));
}

std::string transport(std::string_view name, const spec::Transport& t) {
  return fmt::format("{}:\n  {}  {}  {}  {}  {}", name, line("all_to_all_efficiency", t.all_to_all_efficiency),
                     line("ring_efficiency", t.ring_efficiency), line("p2p_efficiency", t.p2p_efficiency),
                     line("base_latency", t.base_latency), line("step_latency", t.step_latency));
}

}  // namespace

std::string write_gpu(const spec::Gpu& gpu) {
  return fmt::format("summary: {}\n", yaml_string(gpu.summary)) + line("memory", gpu.memory) +
         line("memory_bandwidth", gpu.memory_bandwidth) + line("sms", gpu.sms) + line("bf16", gpu.bf16) +
         fmt::format("kernel_profile: {}\n", gpu.kernel_profile);
}

std::string write_node(const spec::Node& node) {
  return fmt::format("summary: {}\ngpu: {}\n", yaml_string(node.summary), node.gpu_name) +
         line("gpus", spec::Sourced<std::int64_t>{.value = node.gpus,
                                                  .source = "ranks of the measured run that share a node",
                                                  .kind = spec::SourceKind::measured}) +
         line("nvlink_bandwidth", node.nvlink_bandwidth) + transport("nvlink", node.nvlink) + line("nics", node.nics) +
         line("nic_bandwidth", node.nic_bandwidth) + transport("network", node.network) +
         line("pcie_bandwidth", node.pcie_bandwidth) + line("gpus_per_pcie_uplink", node.gpus_per_pcie_uplink) +
         line("pcie_uplink_bandwidth", node.pcie_uplink_bandwidth) +
         line("pageable_copy_efficiency", node.pageable_copy_efficiency) + line("sockets", node.sockets) +
         line("host_memory_bandwidth", node.host_memory_bandwidth) + line("host_memory", node.host_memory) +
         line("host_memory_reserved", node.host_memory_reserved);
}

}  // namespace ulysim::calibration

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hw_models/spec/gpu.h"
#include "hw_models/spec/sourced.h"
#include "sim/base/quantity.h"

namespace ulysim::spec {

/// How NCCL drives one fabric. A transfer of b bytes occupies the links as b/efficiency; a collective starts
/// after `base_latency` and pays `step_latency` for each of its steps.
struct Transport {
  Sourced<double> all_to_all_efficiency{};  ///< achieved bus bandwidth of a large transfer / link rate
  Sourced<double> ring_efficiency{};        ///< all-gather, reduce-scatter, all-reduce
  Sourced<double> p2p_efficiency{};         ///< send/recv
  Sourced<Duration> base_latency{};
  Sourced<Duration> step_latency{};
};

/// Solid-state drives of a node, striped into one volume: what asynchronous reads and writes of large blocks from
/// pinned host memory reach, all drives together, and what they hold.
struct Nvme {
  Sourced<Bandwidth> read{};
  Sourced<Bandwidth> write{};
  Sourced<Bytes> capacity{};
};

/// What joins the GPUs of a node. `nvswitch`: every GPU at `nvlink_bandwidth` to all others. `nvlink_pairs`: bridges
/// join GPU 2i and 2i+1, the rest is PCIe. `pcie`: through the PCIe switches, the sockets and the links between them.
enum class NodeFabric : std::uint8_t { nvswitch, nvlink_pairs, pcie };

/// A server (catalog/nodes/NAME.yaml), or several hosts whose GPUs share one NVLink domain. Bandwidths are per
/// direction.
struct Node {
  std::string name{};
  std::string summary{};
  std::string gpu_name{};
  std::int64_t gpus{};  ///< per node
  NodeFabric fabric{NodeFabric::nvswitch};
  Sourced<Bandwidth> nvlink_bandwidth{};  ///< one GPU into the NVSwitch planes, or its bridge; 0 where there is neither
  Transport nvlink{};                     ///< of traffic inside the node, whatever joins its GPUs
  Sourced<std::int64_t> nics{};           ///< compute-fabric NICs per node; gpus divides by it or it by gpus
  Sourced<Bandwidth> nic_bandwidth{};     ///< one NIC
  Transport network{};
  Sourced<Bandwidth> pcie_bandwidth{};           ///< one GPU to its PCIe switch or socket, usable pinned-copy rate
  Sourced<std::int64_t> gpus_per_pcie_uplink{};  ///< GPUs that share one switch uplink (1: none share)
  Sourced<Bandwidth> pcie_uplink_bandwidth{};
  Sourced<double> pageable_copy_efficiency{};  ///< rate of a pageable copy / rate of a pinned one
  Sourced<std::int64_t> sockets{};
  /// One socket to the others. Read where GPUs talk over PCIe; absent: the sockets' links are never the narrowest.
  std::optional<Sourced<Bandwidth>> inter_socket_bandwidth{};
  Sourced<std::int64_t> hosts{.value = 1};     ///< operating systems (trays) that share the NVLink domain
  Sourced<Bandwidth> host_memory_bandwidth{};  ///< of the whole node
  Sourced<Bytes> host_memory{};                ///< of the whole node
  Sourced<Bytes> host_memory_reserved{};       ///< operating system and loader, not for tensors
  std::optional<Nvme> nvme{};                  ///< of the whole node; absent: no drives that states could go to
};

/// Between nodes: a rail-optimized fat tree joins NIC i of every node in rail i; rails meet in the spine.
struct Network {
  std::string topology{"rail-optimized"};
  double oversubscription{1.0};              ///< rail-to-spine: 1 is non-blocking
  std::optional<Bandwidth> nic_bandwidth{};  ///< overrides the node's
  std::optional<Duration> latency{};         ///< overrides network.base_latency
};

/// What a scenario runs on.
struct Cluster {
  Node node{};
  Gpu gpu{};
  std::int64_t nodes{1};
  std::int64_t gpus{};  ///< used in all: nodes · per-node GPUs used
  Network network{};
  std::optional<double> price_per_gpu_hour{};
  [[nodiscard]] std::int64_t gpus_per_node() const { return gpus / nodes; }
  /// GPUs of one host, as built (a node that is one host: all of the node's).
  [[nodiscard]] std::int64_t gpus_per_host() const { return node.gpus / node.hosts.value; }
  /// Hosts of a node that have a GPU in use; GPUs are taken from the first host on.
  [[nodiscard]] std::int64_t hosts_used() const { return (gpus_per_node() + gpus_per_host() - 1) / gpus_per_host(); }
  /// Memory for tensors on the hosts of a node that have a GPU in use: what offloaded states and checkpoints of the
  /// node's GPUs must fit into.
  [[nodiscard]] Bytes usable_host_memory_per_node() const {
    const std::int64_t all = node.host_memory.value.value() - node.host_memory_reserved.value.value();
    return Bytes(all / node.hosts.value * hosts_used());
  }
  /// The drives of those hosts; nothing where the node has none.
  [[nodiscard]] std::optional<Bytes> usable_nvme_per_node() const {
    if (!node.nvme) {
      return std::nullopt;
    }
    return Bytes(node.nvme->capacity.value.value() / node.hosts.value * hosts_used());
  }
};

}  // namespace ulysim::spec

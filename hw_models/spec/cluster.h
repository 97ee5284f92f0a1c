#pragma once

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

/// A server (catalog/nodes/NAME.yaml). Bandwidths are per direction.
struct Node {
  std::string name{};
  std::string summary{};
  std::string gpu_name{};
  std::int64_t gpus{};                    ///< per node
  Sourced<Bandwidth> nvlink_bandwidth{};  ///< one GPU into the NVSwitch planes together
  Transport nvlink{};
  Sourced<std::int64_t> nics{};        ///< compute-fabric NICs per node; gpus divides by it or it by gpus
  Sourced<Bandwidth> nic_bandwidth{};  ///< one NIC
  Transport network{};
  Sourced<Bandwidth> pcie_bandwidth{};           ///< one GPU to its PCIe switch or socket, usable pinned-copy rate
  Sourced<std::int64_t> gpus_per_pcie_uplink{};  ///< GPUs that share one switch uplink (1: none share)
  Sourced<Bandwidth> pcie_uplink_bandwidth{};
  Sourced<double> pageable_copy_efficiency{};  ///< rate of a pageable copy / rate of a pinned one
  Sourced<std::int64_t> sockets{};
  Sourced<Bandwidth> host_memory_bandwidth{};  ///< of the whole node
  Sourced<Bytes> host_memory{};                ///< of the whole node
  Sourced<Bytes> host_memory_reserved{};       ///< operating system and loader, not for tensors
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
};

}  // namespace ulysim::spec

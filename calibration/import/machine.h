#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ulysim::calibration {

/// A network adapter's port, or a device that may be one.
struct MachineNic {
  std::string name{};  ///< "mlx5_0", else the PCI address
  std::optional<double> gbit_s{};
  std::optional<std::int64_t> numa{};
  std::vector<std::int64_t> near_gpus{};  ///< under the same PCIe switch
};

struct MachineGpu {
  std::string name{};  ///< "GPU0", or the PCI address
  std::optional<std::int64_t> numa{};
  std::optional<std::int64_t> pcie_switch{};  ///< index; GPUs of one index share an uplink
};

/// What a topology file tells of what a node of the catalogue needs; absent is "the file does not say".
struct Machine {
  std::vector<MachineGpu> gpus{};
  std::vector<MachineNic> nics{};
  std::optional<std::string> fabric{};  ///< nvswitch, nvlink-pairs, nvlink-mesh, pcie
  std::optional<std::int64_t> nvlinks_per_gpu{};
  std::optional<double> nvlink_gb_s{};  ///< of one GPU, one direction
  std::optional<std::int64_t> sockets{};
  std::optional<std::int64_t> gpus_per_pcie_uplink{};
  std::optional<double> pcie_gt_s{};
  std::optional<std::int64_t> pcie_width{};
};

}  // namespace ulysim::calibration

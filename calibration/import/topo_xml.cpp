// NCCL's topology files (NVIDIA/nccl src/graph/xml.cc): what NCCL_TOPO_DUMP_FILE writes, and the smaller ones that
// clouds hand to NCCL_TOPO_FILE because a virtual machine does not show its PCIe switches.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "calibration/import/readers.h"
#include "calibration/samples/text.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

constexpr std::string_view kBridge = "0x0604";
constexpr std::string_view kGpu = "0x0302";
constexpr std::string_view kVga = "0x0300";
constexpr std::string_view kNvidia = "0x10de";
constexpr std::string_view kInfiniband = "0x0207";
constexpr std::string_view kEthernet = "0x0200";
constexpr std::string_view kNvSwitch = "0x0680";
/// Of one link in one direction, by the GPU's architecture: NVLink 2 to 4 (sm 70 to 90), NVLink 5.
constexpr double kNvlinkGbS = 25.0;
constexpr double kNvlink5GbS = 50.0;
constexpr std::int64_t kFirstNvlink5 = 100;
constexpr std::size_t kMostDevices = 1024;
constexpr double kMegabit = 1e3;  // to Gb/s

constexpr std::size_t kMostElements = 100'000;
constexpr int kMostDepth = 64;

[[noreturn]] void refuse(Location where, std::string message) {
  throw InputError({{.where = std::move(where), .message = std::move(message)}});
}

/// pugixml knows offsets into the text.
Location at_offset(std::string_view text, std::ptrdiff_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, static_cast<std::size_t>(std::max(offset, std::ptrdiff_t{0})));
  return {.file = file, .line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')), .column = 1};
}

/// What pugixml reads and a topology file has no use for.
class Strict final : public pugi::xml_tree_walker {
 public:
  Strict(std::string_view text, const std::string& file) : text_(text), file_(&file) {}

  bool for_each(pugi::xml_node& node) override {
    const auto stop = [&](std::string message) {
      refuse(at_offset(text_, node.offset_debug(), *file_), std::move(message));
    };
    if (node.type() == pugi::node_doctype) {
      stop("doctypes are not read");
    }
    if (++nodes_ > kMostElements || depth() >= kMostDepth) {
      stop("too many or too deep elements");
    }
    roots_ += depth() == 0 && node.type() == pugi::node_element ? 1 : 0;
    if (roots_ > 1) {
      stop("a second root element");
    }
    std::set<std::string_view> names;
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      if (!names.insert(attribute.name()).second) {
        stop(fmt::format("attribute '{}' stands twice", shown(attribute.name())));
      }
    }
    return true;
  }

 private:
  std::string_view text_;
  const std::string* file_;
  std::size_t nodes_{};
  int roots_{};
};

void parse(std::string_view text, const std::string& file, pugi::xml_document& document) {
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!parsed) {
    refuse(at_offset(text, parsed.offset, file), fmt::format("no well-formed XML: {}", parsed.description()));
  }
  Strict strict(text, file);
  document.traverse(strict);
}

std::string_view attribute(const pugi::xml_node& element, const char* name) {
  return element.attribute(name).value();
}

std::string_view name_of(const pugi::xml_node& element) {
  return element.name();
}

struct Links {
  std::string target{};
  std::int64_t count{};
  bool to_switch{};
};

/// Walks down the tree: what hangs under which CPU and which bridge.
class TopologyReader {
 public:
  TopologyReader(std::string_view text, const std::string& file, ImportedFile& out)
      : text_(text), file_(&file), out_(&out) {}

  void read(const pugi::xml_node& root) {
    if (name_of(root) != "system") {
      diagnostics_.error(at(root),
                         fmt::format("<{}> is no NCCL topology, which begins with <system>", shown(root.name())));
      return;
    }
    for (const pugi::xml_node& child : root.children("cpu")) {
      const auto numa = whole_number(attribute(child, "numaid"));
      sockets_.emplace(attribute(child, "numaid"));
      descend(child, {.numa = numa});
    }
  }

  void finish() {
    if (machine_.gpus.size() > kMostDevices || machine_.nics.size() > kMostDevices) {
      diagnostics_.error({.file = *file_, .line = 1, .column = 1}, "more than 1024 GPUs or network adapters");
    }
    diagnostics_.throw_if_any();
    Machine& machine = machine_;
    machine.sockets = sockets_.empty() ? std::nullopt : std::optional(static_cast<std::int64_t>(sockets_.size()));
    std::map<std::int64_t, std::int64_t> sharing;
    for (const MachineGpu& gpu : machine.gpus) {
      if (gpu.pcie_switch) {
        machine.gpus_per_pcie_uplink = std::max(machine.gpus_per_pcie_uplink.value_or(0), ++sharing[*gpu.pcie_switch]);
      }
    }
    for (std::size_t i = 0; i < machine.nics.size(); ++i) {
      for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
        if (nic_switches_[i] && nic_switches_[i] == machine.gpus[gpu].pcie_switch) {
          machine.nics[i].near_gpus.push_back(static_cast<std::int64_t>(gpu));
        }
      }
    }
    if (machine.gpus.empty() && machine.nics.empty() && unclassed_ == 0) {
      diagnostics_.error({.file = *file_, .line = 1, .column = 1}, "no GPU, no network adapter and no device in it");
      diagnostics_.throw_if_any();
    }
    if (unclassed_ > 0) {
      out_->notes.push_back(
          fmt::format("{} devices without a class: only their NUMA nodes are told, not what they are", unclassed_));
    }
    nvlink();
    out_->machine = std::move(machine_);
  }

 private:
  struct Place {
    std::optional<std::int64_t> numa{};
    std::optional<std::int64_t> pcie_switch{};
  };

  void descend(const pugi::xml_node& parent, const Place& place) {
    for (const pugi::xml_node& child : parent.children()) {
      if (name_of(child) == "pci") {
        pci(child, place);
      } else if (name_of(child) == "nic") {
        for (const pugi::xml_node& net : child.children("net")) {
          add_nic(net, place);
        }
      }
    }
  }

  void pci(const pugi::xml_node& pci, Place place) {
    const std::string_view kind = attribute(pci, "class");
    const auto is = [&](std::string_view wanted) { return kind.starts_with(wanted); };
    const bool gpu_inside = static_cast<bool>(pci.child("gpu"));
    const bool is_leaf = !pci.first_child();
    const std::string_view vendor = attribute(pci, "vendor");
    const bool is_nvidia = vendor.empty() || vendor == kNvidia;  // a board's own VGA is no GPU
    if (is(kBridge)) {
      place.pcie_switch = switches_++;
    } else if (gpu_inside || is(kGpu) || (is(kVga) && is_nvidia)) {
      add_gpu(pci, place);
    } else if ((is(kInfiniband) || is(kEthernet)) && is_leaf) {
      machine_.nics.push_back({.name = shown(attribute(pci, "busid")), .numa = place.numa});
      nic_switches_.push_back(place.pcie_switch);
    } else if (kind.empty() && is_leaf) {
      ++unclassed_;
    }
    descend(pci, place);
  }

  void add_nic(const pugi::xml_node& net, const Place& place) {
    MachineNic nic{.name = shown(attribute(net, "name")), .numa = place.numa};
    if (const auto megabit = whole_number(attribute(net, "speed")); megabit && *megabit > 0) {
      nic.gbit_s = static_cast<double>(*megabit) / kMegabit;
    }
    machine_.nics.push_back(std::move(nic));
    nic_switches_.push_back(place.pcie_switch);
  }

  void add_gpu(const pugi::xml_node& pci, const Place& place) {
    const std::string bus = shown(attribute(pci, "busid"));
    machine_.gpus.push_back({.name = bus, .numa = place.numa, .pcie_switch = place.pcie_switch});
    links_.emplace_back();
    const auto words = words_of(attribute(pci, "link_speed"));
    const auto speed = words.empty() ? std::nullopt : printed_number(words.front());
    const auto width = whole_number(attribute(pci, "link_width"));
    if (speed && width && *width > 0 && *width <= 32) {
      machine_.pcie_gt_s = speed->value;
      machine_.pcie_width = *width;
    }
    for (const pugi::xml_node& gpu : pci.children("gpu")) {
      described_ = true;
      if (const auto sm = whole_number(attribute(gpu, "sm"))) {
        sm_ = *sm;
        out_->gpu = fmt::format("sm_{}", *sm);
      }
      for (const pugi::xml_node& link : gpu.children("nvlink")) {
        const auto count = whole_number(attribute(link, "count"));
        if (!count || *count < 1 || *count > 64) {
          diagnostics_.error(at(link), "an nvlink needs a count of 1 to 64");
          continue;
        }
        links_.back().push_back({.target = shown(attribute(link, "target")),
                                 .count = *count,
                                 .to_switch = attribute(link, "tclass").starts_with(kNvSwitch)});
      }
    }
  }

  void nvlink() {
    if (machine_.gpus.empty()) {
      return;
    }
    if (!described_) {
      out_->notes.emplace_back("the file describes PCIe alone; whether there is NVLink it does not say");
      return;
    }
    std::int64_t most = 0;
    std::int64_t to_switch = 0;
    std::int64_t to_gpu = 0;
    std::vector<std::vector<std::int64_t>> between(machine_.gpus.size(),
                                                   std::vector<std::int64_t>(machine_.gpus.size(), 0));
    for (std::size_t i = 0; i < links_.size(); ++i) {
      std::int64_t total = 0;
      for (const Links& link : links_[i]) {
        if (link.target == machine_.gpus[i].name) {
          to_itself_ = true;
          continue;
        }
        total += link.count;
        (link.to_switch ? to_switch : to_gpu) += 1;
        for (std::size_t j = 0; j < machine_.gpus.size(); ++j) {
          between[i][j] += machine_.gpus[j].name == link.target ? link.count : 0;
        }
      }
      most = std::max(most, total);
    }
    if (to_itself_) {
      out_->notes.emplace_back(
          "GPUs have NVLinks to themselves, which a cloud writes where it hides the other end: "
          "not taken for a fabric");
      return;
    }
    if (most > 0) {
      machine_.nvlinks_per_gpu = most;
      if (sm_) {
        machine_.nvlink_gb_s = static_cast<double>(most) * (*sm_ >= kFirstNvlink5 ? kNvlink5GbS : kNvlinkGbS);
      }
    }
    if (to_switch > 0) {
      machine_.fabric = "nvswitch";
    } else if (to_gpu > 0 && machine_.gpus.size() == 1) {
      machine_.fabric = "nvlink-mesh";
      out_->notes.emplace_back("one GPU of several: its links go to GPUs that the file does not hold");
    } else {
      machine_.fabric = fabric_of(between);
    }
  }

  [[nodiscard]] Location at(const pugi::xml_node& element) const {
    return at_offset(text_, element.offset_debug(), *file_);
  }

  std::string_view text_;
  const std::string* file_;
  ImportedFile* out_;
  Diagnostics diagnostics_;
  Machine machine_;
  std::set<std::string, std::less<>> sockets_;
  std::vector<std::vector<Links>> links_;  ///< of each GPU
  std::vector<std::optional<std::int64_t>> nic_switches_;
  std::optional<std::int64_t> sm_;
  std::int64_t switches_{};
  std::int64_t unclassed_{};
  bool described_{};
  bool to_itself_{};
};

}  // namespace

ImportedFile import_topo_xml(std::string_view text, const std::string& file) {
  ImportedFile out{.format = "NCCL topology"};
  pugi::xml_document document;
  parse(text, file, document);
  TopologyReader reader(text, file, out);
  reader.read(document.document_element());
  reader.finish();
  return out;
}

}  // namespace ulysim::calibration

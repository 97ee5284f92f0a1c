// `nvidia-smi topo -m`. NV# is the number of links that a GPU has towards the other: over NVSwitch all of them.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calibration/import/readers.h"
#include "calibration/samples/text.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

/// What NVLink 2 to 5 give a GPU at most; more towards all others together cannot be direct.
constexpr std::int64_t kMostLinks = 18;
constexpr std::size_t kMostColumns = 256;

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && whole_number(name.substr(3)).has_value();
}

bool is_nic(std::string_view name) {
  return (name.starts_with("NIC") && whole_number(name.substr(3)).has_value()) || name.starts_with("mlx") ||
         name.starts_with("bnxt") || name.starts_with("ib") || name.starts_with("rdma") || name.starts_with("efa") ||
         name.starts_with("irdma");
}

/// Number of links of "NV12"; 0 for the names of PCIe paths; nothing else is a cell.
std::optional<std::int64_t> links_of(std::string_view cell) {
  static constexpr std::string_view kPaths[] = {"X", "SYS", "NODE", "PHB", "PXB", "PIX"};
  if (std::find(std::begin(kPaths), std::end(kPaths), cell) != std::end(kPaths)) {
    return 0;
  }
  const auto links = cell.starts_with("NV") ? whole_number(cell.substr(2)) : std::nullopt;
  return links && *links > 0 && *links <= kMostLinks ? links : std::nullopt;
}

struct MatrixRow {
  int line{};
  std::string name{};
  std::vector<std::string> cells{};  ///< under the columns
  std::optional<std::int64_t> numa{};
};

class MatrixReader {
 public:
  MatrixReader(const std::string& file, ImportedFile& out) : file_(&file), out_(&out) {}

  void read(const Line& line) {
    const std::vector<std::string_view> cells = cells_of(line.text, '\t');
    const auto first = std::find_if(cells.begin(), cells.end(), [](std::string_view c) { return !c.empty(); });
    if (first == cells.end()) {
      return;
    }
    if (columns_.empty()) {
      header(cells);
    } else if (is_gpu(cells.front()) || (is_nic(cells.front()) && cells.size() > columns_.size())) {
      row(cells, line.number);
    }
  }

  void finish() {
    if (columns_.empty() || rows_.empty()) {
      diagnostics_.error({.file = *file_, .line = 1, .column = 1}, "a topology matrix without rows of GPUs");
    }
    diagnostics_.throw_if_any();
    build();
    diagnostics_.throw_if_any();
    describe();
  }

 private:
  void header(const std::vector<std::string_view>& cells) {
    for (const std::string_view cell : cells) {
      if (is_gpu(cell) || is_nic(cell)) {
        columns_.emplace_back(cell);
        gpus_ += is_gpu(cell) ? 1U : 0U;
      } else if (cell == "NUMA Affinity") {
        has_numa_ = true;
      }
    }
    if (columns_.size() > kMostColumns) {
      columns_.clear();
      diagnostics_.error({.file = *file_, .line = 1, .column = 1}, "more than 256 columns");
    }
  }

  void row(const std::vector<std::string_view>& cells, int line) {
    if (cells.size() < columns_.size() + 1) {
      diagnostics_.error(at(line), fmt::format("{} cells under {} columns", cells.size() - 1, columns_.size()));
      return;
    }
    MatrixRow row{.line = line, .name = std::string(cells.front())};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      row.cells.emplace_back(cells[i + 1]);
      if (!links_of(row.cells.back())) {
        diagnostics_.error(at(line), fmt::format("cannot read '{}' under {}", shown(cells[i + 1]), columns_[i]));
      }
    }
    // CPU Affinity, NUMA Affinity.
    if (has_numa_ && cells.size() > columns_.size() + 2) {
      row.numa = whole_number(cells[columns_.size() + 2]);
    }
    if (rows_.contains(row.name)) {
      diagnostics_.error(at(line), fmt::format("{} stands twice", row.name));
    }
    rows_.emplace(row.name, std::move(row));
  }

  void build() {
    links_.assign(gpus_, std::vector<std::int64_t>(gpus_, 0));
    std::size_t gpu = 0;
    for (const std::string& column : columns_) {
      if (!is_gpu(column)) {
        machine_.nics.push_back({.name = column});
        continue;
      }
      MachineGpu described{.name = column};
      const auto found = rows_.find(column);
      if (found != rows_.end()) {
        described.numa = found->second.numa;
        gpu_row(gpu, found->second);
        ++described_;
      }
      machine_.gpus.push_back(std::move(described));
      ++gpu;
    }
    near_nics();
  }

  void gpu_row(std::size_t gpu, const MatrixRow& row) {
    std::size_t other = 0;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (!is_gpu(columns_[column])) {
        continue;
      }
      const bool self = columns_[column] == row.name;
      if (self != (row.cells[column] == "X")) {
        diagnostics_.error(at(row.line), fmt::format("X must stand under {} and nowhere else", row.name));
        return;
      }
      links_[gpu][other] = links_of(row.cells[column]).value_or(0);
      const auto back = rows_.find(columns_[column]);
      const auto mine = std::find(columns_.begin(), columns_.end(), row.name) - columns_.begin();
      if (back != rows_.end() && back->second.cells[static_cast<std::size_t>(mine)] != row.cells[column]) {
        diagnostics_.error(at(row.line),
                           fmt::format("{} and {} say different things of each other", row.name, columns_[column]));
      }
      ++other;
    }
  }

  void near_nics() {
    for (MachineNic& nic : machine_.nics) {
      const auto column = std::find(columns_.begin(), columns_.end(), nic.name) - columns_.begin();
      for (std::size_t gpu = 0; gpu < machine_.gpus.size(); ++gpu) {
        const auto row = rows_.find(machine_.gpus[gpu].name);
        if (row == rows_.end()) {
          continue;
        }
        const std::string& path = row->second.cells[static_cast<std::size_t>(column)];
        if (path == "PIX" || path == "PXB") {
          nic.near_gpus.push_back(static_cast<std::int64_t>(gpu));
        }
      }
    }
  }

  void describe() {
    std::set<std::int64_t> numa;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < gpus_; ++i) {
      if (machine_.gpus[i].numa) {
        numa.insert(*machine_.gpus[i].numa);
      }
      for (std::size_t j = 0; j < gpus_; ++j) {
        most = std::max(most, links_[i][j]);
      }
    }
    const bool whole = described_ == gpus_;
    if (!whole) {
      out_->notes.push_back(
          fmt::format("rows of {} of {} GPUs: the rest of the machine is not known", described_, gpus_));
    } else if (!numa.empty()) {
      machine_.sockets = static_cast<std::int64_t>(numa.size());
    }
    if (most == 0) {
      out_->notes.emplace_back(
          "no NVLink in this matrix: a PCIe machine, or the output of 'nvidia-smi topo -mp', "
          "which hides it");
    } else if (whole) {
      machine_.fabric = fabric_of(links_);
      const bool direct = machine_.fabric == "nvlink-mesh";
      std::int64_t total = 0;
      for (const std::int64_t links : links_.front()) {
        total += links;
      }
      machine_.nvlinks_per_gpu = direct ? total : most;
    }
    out_->machine = std::move(machine_);
  }

  [[nodiscard]] Location at(int line) const { return {.file = *file_, .line = line, .column = 1}; }

  const std::string* file_;
  ImportedFile* out_;
  Diagnostics diagnostics_;
  std::vector<std::string> columns_;
  std::map<std::string, MatrixRow, std::less<>> rows_;
  std::vector<std::vector<std::int64_t>> links_;
  Machine machine_;
  std::size_t gpus_{};
  std::size_t described_{};
  bool has_numa_{};
};

}  // namespace

std::optional<std::string> fabric_of(const std::vector<std::vector<std::int64_t>>& links) {
  const std::size_t gpus = links.size();
  bool pairs = true;
  bool all = true;
  bool none = true;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < gpus; ++i) {
    std::size_t partners = 0;
    std::int64_t total = 0;
    for (std::size_t j = 0; j < gpus; ++j) {
      partners += links[i][j] > 0 ? 1U : 0U;
      total += links[i][j];
    }
    most = std::max(most, total);
    pairs = pairs && partners == 1;
    all = all && partners + 1 == gpus;
    none = none && partners == 0;
  }
  if (none) {
    return "pcie";
  }
  if (pairs) {
    return "nvlink-pairs";
  }
  if (most > kMostLinks) {
    return all ? std::optional<std::string>("nvswitch") : std::nullopt;
  }
  return "nvlink-mesh";
}

ImportedFile import_topo_matrix(std::string_view text, const std::string& file) {
  ImportedFile out{.format = "nvidia-smi topo"};
  MatrixReader reader(file, out);
  for (const Line& line : lines_of(text)) {
    reader.read(line);
  }
  reader.finish();
  return out;
}

}  // namespace ulysim::calibration

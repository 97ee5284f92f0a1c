// The samples as JSON, CSV and text. JSON has seconds and GB/s, null where a figure does not apply, and neither
// folders nor a clock.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "calibration/import/import.h"
#include "calibration/json_text.h"
#include "calibration/samples/collective.h"
#include "calibration/samples/text.h"

namespace ulysim::calibration {
namespace {

/// A table's row as an object: null where a column does not apply.
std::string sample_json(const Sample& sample) {
  std::vector<JsonMember> members;
  for (const Cell& cell : columns_of(sample)) {
    const bool quoted = cell.kind == Cell::Kind::text;
    members.push_back({.name = std::string(cell.column),
                       .json = cell.text.empty() ? "null"
                               : quoted          ? json_string(cell.text)
                                                 : cell.text});
  }
  return json_object(members);
}

/// The file is the source of what names none.
Sample with_source(Sample sample, const std::string& file) {
  if (sample.source.empty()) {
    sample.source = file;
  }
  return sample;
}

std::string file_json(const ImportedFile& file) {
  const CollectiveInfo* collective = find_collective(file.collective);
  return json_object({{"file", json_string(printable(file.name))},
                      {"format", json_string(file.format)},
                      {"collective", json_or_null(file.collective)},
                      {"test", collective == nullptr ? "null" : json_string(collective->test)},
                      {"collective_from", json_or_null(file.collective_from)},
                      {"ranks", json_or_null(file.ranks)},
                      {"ranks_from", json_or_null(file.ranks_from)},
                      {"gpu", json_or_null(file.gpu)},
                      {"complete_rows", json_number(file.rows)},
                      {"zero_size_rows", json_number(file.zero_size_rows)},
                      {"incomplete_rows", json_number(file.incomplete_rows)},
                      {"truncated", file.truncated ? "true" : "false"},
                      {"notes", json_strings(file.notes)}});
}

std::string machine_json(const ImportedFile& file) {
  const Machine& machine = *file.machine;
  std::vector<std::string> gpus;
  for (const MachineGpu& gpu : machine.gpus) {
    gpus.push_back(json_object({{"name", json_string(gpu.name)},
                                {"numa", json_or_null(gpu.numa)},
                                {"pcie_switch", json_or_null(gpu.pcie_switch)}}));
  }
  std::vector<std::string> nics;
  for (const MachineNic& nic : machine.nics) {
    nics.push_back(json_object({{"name", json_string(nic.name)},
                                {"gbit_s", json_or_null(nic.gbit_s)},
                                {"numa", json_or_null(nic.numa)},
                                {"near_gpus", fmt::format("[{}]", fmt::join(nic.near_gpus, ", "))}}));
  }
  return json_object({{"file", json_string(printable(file.name))},
                      {"format", json_string(file.format)},
                      {"gpu", json_or_null(file.gpu)},
                      {"gpus", json_number(static_cast<std::int64_t>(machine.gpus.size()))},
                      {"fabric", json_or_null(machine.fabric)},
                      {"nvlinks_per_gpu", json_or_null(machine.nvlinks_per_gpu)},
                      {"nvlink_bandwidth_gb_s", json_or_null(machine.nvlink_gb_s)},
                      {"nics", json_number(static_cast<std::int64_t>(machine.nics.size()))},
                      {"sockets", json_or_null(machine.sockets)},
                      {"gpus_per_pcie_uplink", json_or_null(machine.gpus_per_pcie_uplink)},
                      {"pcie_gt_s", json_or_null(machine.pcie_gt_s)},
                      {"pcie_width", json_or_null(machine.pcie_width)},
                      {"gpu_list", json_list(gpus, "      ")},
                      {"nic_list", json_list(nics, "      ")},
                      {"notes", json_strings(file.notes)}});
}

std::string sample_text(const Sample& sample) {
  const double micro = sample.seconds * 1e6;
  if (const auto* run = std::get_if<CollectiveProbe>(&sample.probe)) {
    return fmt::format("  {:<14} {:>6} ranks {:>15} B {:>12.4g} us {:>9.2f} GB/s{}\n", info_of(run->collective).name,
                       sample.ranks, run->bytes, micro, rate_of(sample).value_or(0.0),
                       run->in_place ? " in place" : "");
  }
  const auto rate = shown_rate(sample);
  return fmt::format("  {:<60} {:>12.4g} us{}\n", describe(sample.probe), micro,
                     rate ? fmt::format(" {:>9.1f} {}", rate->value, rate->unit) : "");
}

std::string machine_text(const Machine& machine) {
  std::string out = fmt::format("  {} GPUs, {}", machine.gpus.size(), machine.fabric.value_or("fabric not told"));
  if (machine.nvlinks_per_gpu) {
    out += fmt::format(", {} NVLinks a GPU", *machine.nvlinks_per_gpu);
  }
  out += fmt::format(", {} NICs", machine.nics.size());
  if (machine.sockets) {
    out += fmt::format(", {} NUMA nodes", *machine.sockets);
  }
  if (machine.gpus_per_pcie_uplink) {
    out += fmt::format(", {} GPUs a PCIe switch", *machine.gpus_per_pcie_uplink);
  }
  return out + '\n';
}

}  // namespace

std::string to_json(std::span<const ImportedFile> files) {
  std::vector<std::string> samples;
  std::vector<std::string> read;
  std::vector<std::string> machines;
  for (const ImportedFile& file : files) {
    for (const Sample& sample : file.samples) {
      samples.push_back(sample_json(with_source(sample, file.name)));
    }
    read.push_back(file_json(file));
    if (file.machine) {
      machines.push_back(machine_json(file));
    }
  }
  return fmt::format(
      "{{\n  \"format\": \"ulysim-result\",\n  \"version\": 1,\n  \"kind\": \"import\",\n  \"samples\": {},\n"
      "  \"files\": {},\n  \"machines\": {}\n}}\n",
      json_list(samples, "  "), json_list(read, "  "), json_list(machines, "  "));
}

std::string to_csv(std::span<const ImportedFile> files) {
  std::string out = sample_header();
  for (const ImportedFile& file : files) {
    for (const Sample& sample : file.samples) {
      out += sample_row(with_source(sample, file.name));
    }
  }
  return out;
}

std::string to_text(std::span<const ImportedFile> files) {
  std::string out;
  for (const ImportedFile& file : files) {
    out += fmt::format("{}: {}", printable(file.name), file.format);
    out += file.machine ? "" : fmt::format(", {} samples of {} rows", file.samples.size(), file.rows);
    out += file.truncated ? ", cut off at its end\n" : "\n";
    if (!file.collective.empty()) {
      out += fmt::format("  {} ({})", file.collective, file.collective_from);
      out += file.ranks ? fmt::format(", {} ranks ({})", *file.ranks, file.ranks_from) : "";
      out += file.gpu.empty() ? "\n" : fmt::format(", {}\n", file.gpu);
    }
    if (file.machine) {
      out += machine_text(*file.machine);
    }
    for (const std::string& note : file.notes) {
      out += fmt::format("  note: {}\n", note);
    }
    for (const Sample& sample : file.samples) {
      out += sample_text(sample);
    }
  }
  return out;
}

}  // namespace ulysim::calibration

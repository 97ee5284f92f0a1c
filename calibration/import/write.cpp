// The samples as JSON, CSV and text. JSON has seconds and GB/s, null where a figure does not apply, and neither
// folders nor a clock.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "calibration/import/collective.h"
#include "calibration/import/import.h"
#include "calibration/import/text.h"
#include "sim/base/check.h"

namespace ulysim::calibration {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double value) {
  ULYSIM_CHECK(std::isfinite(value), "a sample is not finite: {}", value);
  return fmt::format("{}", value);
}
std::string number(std::int64_t value) {
  return fmt::to_string(value);
}

template <class T>
std::string or_null(const std::optional<T>& value) {
  return value ? number(*value) : "null";
}
std::string or_null(const std::string& text) {
  return text.empty() ? "null" : json_string(text);
}
std::string or_null(const std::optional<std::string>& text) {
  return text ? json_string(*text) : "null";
}

/// Names of files are the user's; JSON is UTF-8.
std::string printable(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return out;
}

struct Cell {
  std::string name{};
  std::string json{};
  std::string csv{};
};

Cell cell(std::string_view name, const std::string& text) {
  return {.name = std::string(name), .json = or_null(text), .csv = text};
}
template <class T>
Cell cell(std::string_view name, const std::optional<T>& value) {
  return {.name = std::string(name), .json = or_null(value), .csv = value ? number(*value) : std::string()};
}

/// One list of columns for JSON and CSV.
std::vector<Cell> cells_of_sample(const Measurement& sample, const std::string& file) {
  const auto* run = std::get_if<CollectiveRun>(&sample.what);
  const auto* gemm = std::get_if<kernel::Gemm>(&sample.what);
  const auto of_run = [&](auto member) { return run == nullptr ? std::nullopt : std::optional(run->*member); };
  const auto of_gemm = [&](auto member) { return gemm == nullptr ? std::nullopt : std::optional(gemm->*member); };
  const std::string in_place = run == nullptr ? "" : run->in_place ? "true" : "false";
  const std::string source = printable(sample.source.empty() ? file : sample.source);
  return {cell("kind", run == nullptr ? "gemm" : "collective"),
          cell("collective", run == nullptr ? std::string() : run->collective),
          cell("ranks", of_run(&CollectiveRun::ranks)),
          cell("bytes", of_run(&CollectiveRun::bytes)),
          cell("time_s", std::optional(sample.seconds)),
          cell("bus_bandwidth_gb_s", sample.bus_bandwidth_gb_s),
          {.name = "in_place", .json = run == nullptr ? "null" : in_place, .csv = in_place},
          cell("precision", gemm == nullptr ? std::string() : kernel::name(gemm->precision)),
          cell("m", of_gemm(&kernel::Gemm::m)),
          cell("n", of_gemm(&kernel::Gemm::n)),
          cell("k", of_gemm(&kernel::Gemm::k)),
          cell("batch", of_gemm(&kernel::Gemm::batch)),
          cell("tflops", sample.tflops),
          cell("spread", sample.spread),
          cell("runs", std::optional(sample.runs)),
          cell("regime", sample.regime),
          cell("gpu", printable(sample.gpu)),
          cell("source", source)};
}

std::string json_object(const std::vector<Cell>& cells) {
  std::vector<std::string> parts;
  parts.reserve(cells.size());
  for (const Cell& one : cells) {
    parts.push_back(fmt::format("{}: {}", json_string(one.name), one.json));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string json_list(const std::vector<std::string>& items, std::string_view indent) {
  if (items.empty()) {
    return "[]";
  }
  return fmt::format("[\n{0}  {1}\n{0}]", indent, fmt::join(items, fmt::format(",\n{}  ", indent)));
}

std::string strings_json(const std::vector<std::string>& strings) {
  std::vector<std::string> items;
  items.reserve(strings.size());
  for (const std::string& text : strings) {
    items.push_back(json_string(text));
  }
  return fmt::format("[{}]", fmt::join(items, ", "));
}

Cell raw(std::string name, std::string json) {
  return {.name = std::move(name), .json = std::move(json)};
}

std::string file_json(const ImportedFile& file) {
  const CollectiveInfo* collective = find_collective(file.collective);
  return json_object({raw("file", json_string(printable(file.name))), raw("format", json_string(file.format)),
                      raw("collective", or_null(file.collective)),
                      raw("test", collective == nullptr ? "null" : json_string(collective->test)),
                      raw("collective_from", or_null(file.collective_from)), raw("ranks", or_null(file.ranks)),
                      raw("ranks_from", or_null(file.ranks_from)), raw("gpu", or_null(file.gpu)),
                      raw("complete_rows", number(file.rows)), raw("zero_size_rows", number(file.zero_size_rows)),
                      raw("incomplete_rows", number(file.incomplete_rows)),
                      raw("truncated", file.truncated ? "true" : "false"), raw("notes", strings_json(file.notes))});
}

std::string machine_json(const ImportedFile& file) {
  const Machine& machine = *file.machine;
  std::vector<std::string> gpus;
  for (const MachineGpu& gpu : machine.gpus) {
    gpus.push_back(json_object({raw("name", json_string(gpu.name)), raw("numa", or_null(gpu.numa)),
                                raw("pcie_switch", or_null(gpu.pcie_switch))}));
  }
  std::vector<std::string> nics;
  for (const MachineNic& nic : machine.nics) {
    nics.push_back(json_object({raw("name", json_string(nic.name)), raw("gbit_s", or_null(nic.gbit_s)),
                                raw("numa", or_null(nic.numa)),
                                raw("near_gpus", fmt::format("[{}]", fmt::join(nic.near_gpus, ", ")))}));
  }
  return json_object(
      {raw("file", json_string(printable(file.name))), raw("format", json_string(file.format)),
       raw("gpu", or_null(file.gpu)), raw("gpus", number(static_cast<std::int64_t>(machine.gpus.size()))),
       raw("fabric", or_null(machine.fabric)), raw("nvlinks_per_gpu", or_null(machine.nvlinks_per_gpu)),
       raw("nvlink_bandwidth_gb_s", or_null(machine.nvlink_gb_s)),
       raw("nics", number(static_cast<std::int64_t>(machine.nics.size()))), raw("sockets", or_null(machine.sockets)),
       raw("gpus_per_pcie_uplink", or_null(machine.gpus_per_pcie_uplink)), raw("pcie_gt_s", or_null(machine.pcie_gt_s)),
       raw("pcie_width", or_null(machine.pcie_width)), raw("gpu_list", json_list(gpus, "      ")),
       raw("nic_list", json_list(nics, "      ")), raw("notes", strings_json(file.notes))});
}

std::string csv_text(std::string text) {
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos) {
    text.insert(0, "'");  // no formula (OWASP, CSV injection)
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c;
    out += c == '"' ? "\"" : "";
  }
  return out + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  return fmt::format("{}\r\n", fmt::join(cells, ","));
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
    for (const Measurement& sample : file.samples) {
      samples.push_back(json_object(cells_of_sample(sample, file.name)));
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
  std::vector<std::string> header;
  for (const Cell& one : cells_of_sample({}, "")) {
    header.push_back(one.name);
  }
  std::string out = csv_line(header);
  for (const ImportedFile& file : files) {
    for (const Measurement& sample : file.samples) {
      std::vector<std::string> cells;
      for (Cell& one : cells_of_sample(sample, file.name)) {
        cells.push_back(csv_text(std::move(one.csv)));
      }
      out += csv_line(cells);
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
    for (const Measurement& sample : file.samples) {
      if (const auto* run = std::get_if<CollectiveRun>(&sample.what)) {
        out += fmt::format("  {:<14} {:>6} ranks {:>15} B {:>12.4g} us {:>9.2f} GB/s{}\n", run->collective, run->ranks,
                           run->bytes, sample.seconds * 1e6, sample.bus_bandwidth_gb_s.value_or(0.0),
                           run->in_place ? " in place" : "");
      } else {
        const auto& gemm = std::get<kernel::Gemm>(sample.what);
        out += fmt::format("  gemm {} {} x {} x {} x {} {:>12.4g} us {:>9.1f} TFLOP/s\n", kernel::name(gemm.precision),
                           gemm.batch, gemm.m, gemm.n, gemm.k, sample.seconds * 1e6, sample.tflops.value_or(0.0));
      }
    }
  }
  return out;
}

}  // namespace ulysim::calibration

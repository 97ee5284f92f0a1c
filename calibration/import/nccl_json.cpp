// What nccl-tests writes with -J (NVIDIA/nccl-tests src/util.cu, from 2.19).

#include <fmt/format.h>

#include "calibration/import/nccl_tests.h"
#include "sim/config/mapping.h"

namespace ulysim::calibration {
namespace {

using config::Node;

const std::string& text_of(const Node& node, std::string_view key) {
  static const std::string kNone;
  const Node* found = node.find(key);
  return found == nullptr ? kNone : found->text;
}

std::optional<Half> read_half(const Node& row, const char* key, Diagnostics& diagnostics) {
  const Node* node = row.find(key);
  if (node == nullptr || node->kind != Node::Kind::mapping) {
    return std::nullopt;
  }
  if (node->find("cpu_time") != nullptr) {
    diagnostics.error(node->where, "the times are of the CPU's call (-C 1), not of the collective");
    return std::nullopt;
  }
  const auto time = printed_number(text_of(*node, "time"));
  const auto algbw = printed_number(text_of(*node, "alg_bw"));
  const auto busbw = printed_number(text_of(*node, "bus_bw"));
  if (!time || !algbw || !busbw || time->value < 1e-3) {
    diagnostics.error(node->where, "'time', 'alg_bw' and 'bus_bw' must be numbers, the time above 0");
    return std::nullopt;
  }
  Half half{.time_us = *time, .algbw = *algbw, .busbw = *busbw};
  if (const auto wrong = printed_number(text_of(*node, "nwrong"))) {
    half.wrong = wrong->value;
  }
  if (const Node* each = row.find(fmt::format("{}_per_iter", key)); each != nullptr) {
    const auto cv = printed_number(text_of(*each, "cv_pct"));
    half.cv_pct = cv ? std::optional(cv->value) : std::nullopt;
  }
  return half;
}

std::optional<NcclRow> read_row(const Node& node, Diagnostics& diagnostics) {
  // Names of types as in the text; the file gives the size of the payload, so one element tells the element's size.
  const auto size = whole_number(text_of(node, "size"));
  const auto count = whole_number(text_of(node, "count"));
  if (!size || !count) {
    diagnostics.error(node.where, "a result needs 'size' and 'count'");
    return std::nullopt;
  }
  const std::string root = text_of(node, "root");
  NcclRow row{.line = node.where.line, .size = *size, .count = *count, .redop = text_of(node, "redop")};
  row.root = whole_number(trimmed(root));
  const auto bytes = element_bytes(text_of(node, "type"));
  if (!bytes) {
    diagnostics.error(node.where, fmt::format("unknown type '{}'", shown(text_of(node, "type"))));
    return std::nullopt;
  }
  row.element_bytes = *bytes;
  row.out_of_place = read_half(node, "out_of_place", diagnostics);
  row.in_place = read_half(node, "in_place", diagnostics);
  return row;
}

void read_devices(const Node& root, NcclTable& table) {
  const Node* config = root.find("config");
  const Node* devices = config == nullptr ? nullptr : config->find("devices");
  devices = devices == nullptr ? root.find("devices") : devices;
  if (devices == nullptr) {
    return;
  }
  for (const Node& device : devices->items) {
    table.rank_groups.push_back(whole_number(text_of(device, "group")).value_or(0));
    std::string_view gpu = text_of(device, "device_info");
    if (gpu.starts_with("NVIDIA ")) {
      gpu.remove_prefix(7);
    }
    table.gpu = shown(trimmed(gpu));
  }
}

}  // namespace

ImportedFile import_nccl_json(std::string_view text, const std::string& file, const ImportHints& hints) {
  const Node root = config::parse_json(text, file);
  ImportedFile out{.format = "nccl-tests JSON"};
  Diagnostics diagnostics;
  NcclTable table{.line = 1};
  if (const Node* args = root.find("args"); args != nullptr && !args->items.empty()) {
    std::string_view program = args->items.front().text;
    program = program.substr(program.rfind('/') == std::string_view::npos ? 0 : program.rfind('/') + 1);
    table.program = find_collective(program) == nullptr ? std::string_view() : program;
  }
  read_devices(root, table);
  if (const Node* results = root.find("results"); results != nullptr) {
    for (const Node& node : results->items) {
      auto row = read_row(node, diagnostics);
      if (row && row->size == 0) {
        ++out.zero_size_rows;
      } else if (row && (row->out_of_place || row->in_place)) {
        table.rows.push_back(std::move(*row));
      }
    }
  }
  diagnostics.throw_if_any();
  if (table.rows.empty()) {
    diagnostics.error({.file = file, .line = 1, .column = 1}, "no result in it");
  } else {
    add_samples(table, hints, file, out, diagnostics);
  }
  diagnostics.throw_if_any();
  return out;
}

}  // namespace ulysim::calibration

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "hw_models/spec/load.h"
#include "hw_models/topology/topology.h"
#include "reports/output.h"
#include "reports/text.h"
#include "reports/writer.h"
#include "sim/base/named.h"
#include "sim/collectives/algorithm.h"
#include "sim/scenario/keys.h"
#include "sim/scenario/resources.h"
#include "sim/strategies/strategy.h"
#include "tools/command.h"
#include "tools/data_folder.h"
#include "tools/study_input.h"
#include "tools/terminal.h"

namespace ulysim::tools {
namespace {

namespace fs = std::filesystem;
using Row = std::pair<std::string, std::string>;
using Rows = std::vector<Row>;

Rows gpus(const fs::path& data) {
  const spec::Catalog catalog(data / "catalog");
  Rows rows;
  for (const std::string& name : catalog.gpu_names()) {
    rows.emplace_back(name, catalog.load_gpu(name).summary);
  }
  return rows;
}

Rows nodes(const fs::path& data) {
  const spec::Catalog catalog(data / "catalog");
  Rows rows;
  for (const std::string& name : catalog.node_names()) {
    rows.emplace_back(name, catalog.load_node(name).summary);
  }
  return rows;
}

Rows frameworks(const fs::path& data) {
  const spec::Catalog catalog(data / "catalog");
  Rows rows;
  for (const std::string& name : catalog.framework_names()) {
    rows.emplace_back(name, catalog.load_framework(name).summary);
  }
  return rows;
}

Rows models(const fs::path& data) {
  Rows rows;
  for (const std::string& name : scenario::model_names(data / "scenarios" / "models")) {
    rows.emplace_back(name, "");
  }
  return rows;
}

Rows strategies(const fs::path&) {
  Rows rows;
  for (const strategies::Strategy* strategy : strategies::strategies()) {
    rows.emplace_back(strategy->name(), strategy->summary());
  }
  return rows;
}

Rows collectives(const fs::path&) {
  Rows rows;
  for (const collectives::Algorithm* algorithm : collectives::algorithms()) {
    rows.emplace_back(algorithm->name(), algorithm->summary());
  }
  return rows;
}

Rows topologies(const fs::path&) {
  Rows rows;
  for (const topology::TopologyInfo& info : topology::topologies()) {
    rows.emplace_back(info.name, info.summary);
  }
  return rows;
}

Rows attention(const fs::path&) {
  Rows rows;
  for (const std::string& word : scenario::find_key("attention", "implementation")->words) {
    rows.emplace_back(word, "");
  }
  return rows;
}

/// A study's first comment line says what it shows.
std::string first_comment(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line.starts_with("# ") ? line.substr(2) : std::string();
}

Rows files_in(const fs::path& folder) {
  Rows rows;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".yaml") {
      rows.emplace_back(it->path().stem().string(), first_comment(it->path()));
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

Rows scenarios(const fs::path& data) {
  return files_in(data / "scenarios" / "runs");
}

Rows sweeps(const fs::path& data) {
  return files_in(data / "scenarios" / "sweeps");
}

Rows formats(const fs::path&) {
  Rows rows;
  for (const reports::ReportWriter* writer : reports::writers()) {
    rows.emplace_back(writer->name(), writer->summary());
  }
  return rows;
}

struct Kind {
  const char* name{};
  Rows (*rows)(const fs::path&){};
};

constexpr std::array<Kind, 11> kKinds{{{"gpus", gpus},
                                       {"nodes", nodes},
                                       {"models", models},
                                       {"frameworks", frameworks},
                                       {"strategies", strategies},
                                       {"collectives", collectives},
                                       {"topologies", topologies},
                                       {"attention", attention},
                                       {"scenarios", scenarios},
                                       {"sweeps", sweeps},
                                       {"formats", formats}}};

int run(const Arguments& arguments) {
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const Kind& kind : kKinds) {
    names.emplace_back(kind.name);
  }
  const std::string& wanted = only_positional(arguments, "kind (" + fmt::format("{}", fmt::join(names, ", ")) + ")");
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    throw UsageError(fmt::format("unknown kind '{}'{}", wanted, did_you_mean(wanted, names)));
  }
  const Rows rows = kKinds[static_cast<std::size_t>(found - names.begin())].rows(find_data_directory());
  std::size_t widest = 0;
  for (const Row& row : rows) {
    widest = std::max(widest, row.first.size());
  }
  // A line a row for programs; people's terminals are not that wide.
  const std::size_t width = stdout_is_terminal() ? terminal_style({}).width : std::numeric_limits<std::size_t>::max();
  std::string text;
  for (const Row& row : rows) {
    text += row.second.empty() ? row.first + '\n' : reports::item(row.first, row.second, widest + 2, width);
  }
  reports::write_stdout(text);
  return kDone;
}

}  // namespace

Command list_command() {
  return {.name = "list",
          .summary = "the catalogues: what names a scenario may use",
          .positional = "KIND",
          .positional_help =
              "gpus, nodes, models, frameworks, strategies, collectives, topologies, attention, "
              "scenarios, sweeps or formats",
          .takes = "gpus|nodes|models|frameworks|strategies|collectives|topologies|attention|scenarios|sweeps|formats",
          .options = {},
          .examples =
              "  ulysim list nodes\n"
              "  ulysim list models\n",
          .run = run};
}

}  // namespace ulysim::tools

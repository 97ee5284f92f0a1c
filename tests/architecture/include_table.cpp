#include "tests/architecture/include_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace ulysim::architecture {
namespace {

// The whole rule. Floors only go up, so there can be no cycle; a new edge is a decision and is made here.
const std::vector<Module>& table() {
  static const std::vector<Module> rows{
      {0, "sim/base", {}, {}},
      {1, "sim/config", {"yaml-cpp/", "nlohmann/", "toml++/", "toml.hpp"}, {"sim/base"}},
      {1, "sim/results", {}, {"sim/base"}},
      {2, "hw_models/spec", {}, {"sim/base", "sim/config"}},
      {2, "hw_models/kernel", {}, {"sim/base"}},
      {3, "hw_models/topology", {"boost/", "pugixml.hpp"}, {"sim/base", "hw_models/spec"}},
      {3, "hw_models/cost", {}, {"sim/base", "hw_models/spec", "hw_models/kernel"}},
      {4, "sim/workload", {}, {"sim/base", "sim/config", "hw_models/kernel"}},
      {5, "sim/strategies", {}, {"sim/base", "sim/workload", "hw_models/spec"}},
      {5, "sim/collectives", {}, {"sim/base", "sim/workload", "hw_models/topology"}},
      {5, "sim/network", {}, {"sim/base", "hw_models/topology"}},
      {6,
       "sim/engine",
       {},
       {"sim/base", "sim/results", "sim/workload", "sim/collectives", "sim/network", "hw_models/cost",
        "hw_models/topology", "hw_models/spec"}},
      {6, "sim/memory", {}, {"sim/base", "sim/results", "sim/workload", "hw_models/spec"}},
      {6,
       "sim/scenario",
       {},
       {"sim/base", "sim/config", "hw_models/spec", "hw_models/cost", "hw_models/topology", "sim/workload",
        "sim/strategies", "sim/collectives"}},
      {7, "sim/exchange", {}, {"sim/base", "sim/config", "sim/workload", "sim/scenario"}},
      {7, "sim/study", {}, {"sim/*", "hw_models/*"}},
      {7,
       "calibration",
       {"Eigen/", "pugixml.hpp", "cuda", "cublas", "cudnn", "nccl.h", "mpi.h"},
       {"sim/base", "sim/config", "hw_models/spec", "hw_models/kernel", "hw_models/cost"}},
      {7, "reports", {"nlohmann/"}, {"sim/base", "sim/config", "sim/results"}},
      {8, "tools", {"CLI/", "mpi.h"}, {"*"}},
  };
  return rows;
}

// The operating system's own headers; beside them only the standard library's, which have neither dot nor slash.
constexpr std::array<std::string_view, 14> kSystemHeaders{"unistd.h",  "fcntl.h", "signal.h",  "dirent.h", "sched.h",
                                                          "pthread.h", "netdb.h", "termios.h", "poll.h",   "spawn.h",
                                                          "cxxabi.h",  "dlfcn.h", "sys/",      "netinet/"};

bool starts_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool is_header(std::string_view path) {
  return path.ends_with(".h");
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

bool may_include(const Module& from, const Module& to) {
  if (from.folder == to.folder) {
    return true;
  }
  return std::any_of(from.may_include.begin(), from.may_include.end(), [&](std::string_view allowed) {
    return allowed.ends_with('*') ? to.folder.starts_with(allowed.substr(0, allowed.size() - 1)) : allowed == to.folder;
  });
}

std::optional<std::string> quoted_violation(const Module& from, std::string_view target) {
  const Module* to = module_of(target);
  if (to == nullptr) {
    return fmt::format("\"{}\" is no path from the root; third-party headers stand in <>", target);
  }
  if (!may_include(from, *to)) {
    return fmt::format("{} must not include {}", from.folder, target);
  }
  return std::nullopt;
}

std::optional<std::string> angled_violation(const Module& from, std::string_view path, std::string_view target) {
  const bool standard = target.find_first_of("./") == std::string_view::npos;
  if (standard || target.starts_with("fmt/")) {
    return std::nullopt;
  }
  if (starts_with_any(target, kSystemHeaders)) {
    return is_header(path) ? std::optional(fmt::format("<{}> belongs into a .cpp", target)) : std::nullopt;
  }
  if (!starts_with_any(target, from.third_party)) {
    return fmt::format("{} must not include <{}>", from.folder, target);
  }
  if (is_header(path)) {
    return fmt::format("<{}> belongs into a .cpp: its users would all pay for it", target);
  }
  return std::nullopt;
}

}  // namespace

std::span<const Module> modules() {
  return table();
}

const Module* module_of(std::string_view path) {
  const auto found = std::find_if(table().begin(), table().end(), [&](const Module& module) {
    return path.starts_with(module.folder) && path.substr(module.folder.size()).starts_with('/');
  });
  return found == table().end() ? nullptr : &*found;
}

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> found;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!rest.starts_with('#')) {
      continue;
    }
    rest = trimmed(rest.substr(1));
    constexpr std::string_view kInclude = "include";
    if (!rest.starts_with(kInclude)) {
      continue;
    }
    rest = trimmed(rest.substr(kInclude.size()));
    if (!rest.starts_with('<') && !rest.starts_with('"')) {
      continue;
    }
    const bool angled = rest.front() == '<';
    rest.remove_prefix(1);
    found.push_back({line, std::string(rest.substr(0, rest.find(angled ? '>' : '"'))), angled});
  }
  return found;
}

std::vector<std::string> include_violations(std::string_view path, std::string_view text) {
  const Module* from = module_of(path);
  if (from == nullptr) {
    return {fmt::format("{}:1: this folder is not in the table of modules", path)};
  }
  std::vector<std::string> violations;
  for (const Include& include : includes_of(text)) {
    const auto wrong =
        include.angled ? angled_violation(*from, path, include.target) : quoted_violation(*from, include.target);
    if (wrong) {
      violations.push_back(fmt::format("{}:{}: {}", path, include.line, *wrong));
    }
  }
  return violations;
}

}  // namespace ulysim::architecture

#include "sim/study/validate_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "sim/config/mapping.h"
#include "sim/study/validate_scenario.h"

namespace ulysim::study {
namespace {

namespace fs = std::filesystem;
using config::Mapping;
using config::Node;

/// A mistake in `base` is met once a row and told once.
class Once {
 public:
  explicit Once(Diagnostics& diagnostics) : diagnostics_(&diagnostics) {}

  void tell(const Diagnostic& found) {
    if (told_.insert({found.where.line, found.where.column, found.message}).second) {
      diagnostics_->error(found.where, found.message);
    }
  }

 private:
  Diagnostics* diagnostics_;
  std::set<std::tuple<int, int, std::string>> told_;
};

std::string read_source(const Node* node, Diagnostics& diagnostics) {
  const Node none{.kind = Node::Kind::mapping};
  Mapping source(node != nullptr ? *node : none, "source", diagnostics);
  if (node == nullptr) {
    return {};
  }
  auto name = source.required<std::string>("name");
  (void)source.required<std::string>("title");
  const bool arxiv = source.find("arxiv") != nullptr;
  const bool repository = source.maybe<std::string>("repository").has_value();
  if (!arxiv && !repository) {
    source.diagnostics().error(node->where, "'source': needs 'arxiv' or 'repository'");
  }
  source.ignore("arxiv");  // looks like a number and is a name
  (void)source.maybe<std::string>("table");
  source.finish();
  return name;
}

/// Reports keys of a scenario fragment beside model, cluster and training.
void check_fragment(const Node* node, const std::string& path, Diagnostics& diagnostics) {
  if (node == nullptr) {
    return;
  }
  Mapping fragment(*node, path, diagnostics);
  fragment.ignore("model");
  fragment.ignore("cluster");
  fragment.ignore("training");
  fragment.finish();
}

std::optional<Bracket> read_bracket(Mapping& row, bool of_length) {
  const auto fits = row.maybe<std::int64_t>("fits_at");
  const auto fails = row.maybe<std::int64_t>("fails_at");
  if (!fits && !fails) {
    return std::nullopt;
  }
  if (!of_length) {
    row.error(fits ? "fits_at" : "fails_at", "brackets a length; the metric is not max_sequence_length");
  } else if (!fits || !fails) {
    row.error(fits ? "fits_at" : "fails_at", "needs the other end beside it: fits_at and fails_at");
  } else if (!(0 < *fits && *fits < *fails)) {
    row.error("fails_at", "must be above fits_at, and that above 0");
  } else {
    return Bracket{.fits_at = *fits, .fails_at = *fails};
  }
  return std::nullopt;
}

void read_measured(Mapping& row, Measurement& out) {
  static const std::array<std::string, 3> outcomes{"measured", "oom", "fits"};
  out.outcome = static_cast<Outcome>(row.choice("outcome", outcomes, 0));
  const bool measured = out.outcome == Outcome::measured;
  out.metric = static_cast<Metric>(row.choice("metric", metric_names(), 0));
  if (measured && row.find("metric") == nullptr) {
    row.error("metric", "missing (step_time_s, tokens_per_s_per_gpu …)");
  }
  out.bracket = read_bracket(row, measured && out.metric == Metric::max_sequence_length);
  if (out.metric == Metric::max_sequence_length) {  // a length is a count: 1.1M, 4Mi
    const auto tokens = row.maybe<std::int64_t>("measured");
    out.measured = tokens ? std::optional(static_cast<double>(*tokens)) : std::nullopt;
  } else {
    out.measured = row.maybe<double>("measured");
  }
  if (!measured && out.measured) {
    row.error("measured", "stands beside an outcome, where nothing was measured");
  } else if (out.bracket && out.measured) {
    row.error("measured", "stands beside fits_at and fails_at");
  } else if (measured && !out.bracket && row.find("measured") == nullptr) {
    row.error("measured", "missing (a number in the unit of the metric, or 'outcome: oom' or 'fits')");
  } else if (out.measured && !(*out.measured > 0.0 && std::isfinite(*out.measured))) {
    row.error("measured", "must be above 0");
  }
  if (row.find("convention") != nullptr) {
    out.convention = static_cast<Convention>(row.choice("convention", convention_names(), 0));
    if (out.metric != Metric::tflops_per_gpu && out.metric != Metric::mfu) {
      row.error("convention", "counts FLOPs; the metric is neither tflops_per_gpu nor mfu");
    }
  }
}

/// Whether every mistake is only that the simulator cannot do it yet.
bool not_yet_supported(const InputError& error) {
  return std::all_of(error.diagnostics().begin(), error.diagnostics().end(), [](const Diagnostic& found) {
    return found.message.find("not yet supported") != std::string::npos;
  });
}

struct File {
  fs::path folder{};
  fs::path data{};
  const Node* base{};
};

Measurement read_row(const Node& node, const std::string& path, const File& file, Once& once,
                     Diagnostics& diagnostics) {
  Mapping row(node, path, diagnostics);
  Measurement out{.id = row.required<std::string>("id")};
  read_measured(row, out);
  out.note = row.optional<std::string>("note", {});
  const Node* set = row.find("set");
  check_fragment(set, row.path_of("set"), diagnostics);
  const Node* plan = row.find("plan");
  if (plan == nullptr) {
    row.error("plan", "missing (degrees and training keys, as in a scenario's plans)");
  }
  row.finish();
  if (plan == nullptr || file.base == nullptr) {
    return out;
  }
  try {
    out.scenario = row_scenario({.fragment = set != nullptr ? laid_over(*file.base, *set) : *file.base,
                                 .plan = plan,
                                 .path = path,
                                 .where = node.where,
                                 .folder = file.folder},
                                file.data);
  } catch (const InputError& error) {
    if (not_yet_supported(error)) {
      out.refused = error.diagnostics().front().message;
      return out;
    }
    for (const Diagnostic& found : error.diagnostics()) {
      once.tell(found);
    }
  }
  return out;
}

}  // namespace

std::span<const std::string> metric_names() {
  static const std::array<std::string, 11> names{
      "step_time_s",
      "tokens_per_s_per_gpu",
      "tokens_per_s",
      "tflops_per_gpu",
      "mfu",
      "peak_gpu_memory_gib",
      "peak_gpu_allocated_gib",
      "peak_gpu_reserved_gib",
      "peak_host_memory_gib_per_node",
      "max_sequence_length",
      "sequence_attention_s",
  };
  return names;
}

Publication read_publication(const fs::path& path, const fs::path& data, Diagnostics& diagnostics) {
  const Node document = config::load_file(path);
  Mapping root(document, "", diagnostics);
  Publication publication;
  for (const char* key : {"source", "base", "rows"}) {
    if (root.find(key) == nullptr && document.kind == Node::Kind::mapping) {
      root.error(key, "missing");
    }
  }
  publication.name = read_source(root.find("source"), diagnostics);
  (void)root.maybe<std::string>("notes");
  check_fragment(root.find("base"), "base", diagnostics);
  const File file{.folder = path.parent_path(), .data = data, .base = root.find("base")};
  Once once(diagnostics);
  std::set<std::string> ids;
  const auto rows = root.items("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Measurement row = read_row(*rows[i], fmt::format("rows[{}]", i), file, once, diagnostics);
    if (!row.id.empty() && !ids.insert(row.id).second) {
      diagnostics.error(rows[i]->where, fmt::format("'rows[{}].id': '{}' stands twice", i, row.id));
    }
    publication.rows.push_back(std::move(row));
  }
  root.finish();
  return publication;
}

}  // namespace ulysim::study

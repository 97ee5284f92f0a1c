#include "sim/scenario/plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/named.h"
#include "sim/scenario/adapters.h"

namespace ulysim::scenario {
namespace {

using workload::MeshAxis;

/// "tensor 3 × ulysses 2 = 6"; the degree alone when there is one.
std::string product_text(const std::vector<std::string>& factors, std::int64_t product) {
  return factors.size() == 1 ? factors.front() : fmt::format("{} = {}", fmt::join(factors, " × "), product);
}

/// The degrees that a plan names, in the order of the mesh.
struct Degrees {
  std::int64_t product{1};             ///< of the numbers
  std::vector<std::string> factors{};  ///< "tensor 2"
  std::optional<MeshAxis> rest{};      ///< takes the GPUs that the numbers leave
};

Degrees named_degrees(Section& section, workload::Mesh& mesh) {
  Degrees degrees;
  for (const MeshAxis axis :
       {MeshAxis::tensor, MeshAxis::ulysses, MeshAxis::ring, MeshAxis::data, MeshAxis::pipeline}) {
    const config::Node* node = section.find(name(axis));
    if (node != nullptr && node->text == find_key("plan", name(axis))->words.front()) {
      if (degrees.rest) {
        section.error(name(axis), fmt::format("'{}' has all the GPUs that are left already", name(*degrees.rest)));
      }
      degrees.rest = axis;
    } else if (const auto value = section.integer(name(axis), {1, kMostGpus})) {
      mesh.set_size(axis, *value);
      degrees.product *= *value;
      degrees.factors.push_back(fmt::format("{} {}", name(axis), *value));
    }
  }
  return degrees;
}

void read_degrees(Section& section, const PlanContext& context, workload::Mesh& mesh) {
  const std::size_t before = section.diagnostics().list().size();
  const Degrees degrees = named_degrees(section, mesh);
  // Experts live on the ranks of data × sequence: their degree takes no GPUs of its own.
  mesh.set_size(MeshAxis::expert, section.integer(name(MeshAxis::expert), {1, kMostGpus}).value_or(1));
  mesh.set_size(MeshAxis::replicate, section.integer("data_replicate", {1, kMostGpus}).value_or(1));
  if (context.gpus == 0 || section.diagnostics().list().size() != before) {
    return;
  }
  const std::string product = product_text(degrees.factors, degrees.product);
  const bool complete = !degrees.rest && section.find(name(MeshAxis::data)) != nullptr;
  if (complete && degrees.product != context.gpus) {
    section.error_here(fmt::format("{} is not the {} GPUs of the cluster", product, context.gpus));
  } else if (context.gpus % degrees.product != 0) {
    section.error_here(fmt::format("{} does not divide {} GPUs", product, context.gpus));
  } else if (!complete) {
    mesh.set_size(degrees.rest.value_or(MeshAxis::data), context.gpus / degrees.product);
  }
}

/// The axes named, innermost first, then the others in their usual order.
void read_placement(Section& section, workload::Mesh& mesh) {
  static const std::vector<std::string> kNames{"tensor", "ulysses", "ring", "data", "pipeline"};
  std::vector<MeshAxis> order;
  for (const config::Node* item : section.items("placement")) {
    const auto text = config::read<std::string>(*item, section.path_of("placement"), section.diagnostics());
    if (!text) {
      return;
    }
    const auto found = std::find(kNames.begin(), kNames.end(), *text);
    if (found == kNames.end()) {
      section.diagnostics().error(item->where, fmt::format("'{}': unknown axis '{}'{}", section.path_of("placement"),
                                                           *text, did_you_mean(*text, kNames)));
      return;
    }
    const auto axis = static_cast<MeshAxis>(found - kNames.begin());
    if (std::find(order.begin(), order.end(), axis) != order.end()) {
      section.diagnostics().error(item->where,
                                  fmt::format("'{}': '{}' stands twice", section.path_of("placement"), *text));
      return;
    }
    order.push_back(axis);
  }
  for (const MeshAxis axis : workload::kAxes) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) {
      order.push_back(axis);
    }
  }
  std::copy(order.begin(), order.end(), mesh.placement.begin());
}

void read_ring_options(Section& section, strategies::Plan& plan) {
  if (const auto index = section.word("ring_layout")) {
    plan.ring_layout = static_cast<workload::Layout>(*index);
  }
  if (const auto index = section.word("ring_exchange")) {
    plan.ring_exchange = static_cast<strategies::RingExchange>(*index);
  }
}

void read_chunks(Section& section, strategies::Plan& plan) {
  constexpr std::int64_t kMostHeadChunks = 4096;
  plan.head_chunks = section.integer("head_chunks", {1, kMostHeadChunks}).value_or(1);
  plan.sequence_chunk = section.integer("sequence_chunk", {1, kLongestSequence});
}

/// Interleaving is having virtual stages: `schedule` may say it, and must then agree.
void read_schedule(Section& section, strategies::Plan& plan) {
  constexpr std::int64_t kMostVirtualStages = 1024;
  const auto chunks = section.integer("virtual_stages", {1, kMostVirtualStages});
  plan.virtual_stages = chunks.value_or(1);
  if (const auto index = section.word("schedule")) {
    const bool interleaved = *index == 1;
    if (interleaved && plan.virtual_stages == 1) {
      section.error("schedule", "interleaved needs virtual_stages of 2 or more");
    } else if (!interleaved && plan.virtual_stages > 1) {
      section.error("schedule",
                    fmt::format("1f1b stands beside virtual_stages {}, which are interleaved", plan.virtual_stages));
    }
  }
}

/// Accumulation from the global batch, which the replicas and their micro-batches must divide.
void resolve_batch(Section& section, const Training& training, strategies::Plan& plan) {
  const std::int64_t data = plan.mesh.size(MeshAxis::data);
  const std::int64_t at_once = plan.micro_batch * data;
  if (!training.global_batch) {
    plan.accumulation = training.accumulation.value_or(1);
    return;
  }
  if (*training.global_batch % at_once != 0) {
    section.error_here(fmt::format("global_batch {} is not a multiple of micro_batch {} × data {}",
                                   *training.global_batch, plan.micro_batch, data));
    return;
  }
  plan.accumulation = *training.global_batch / at_once;
}

constexpr double kMostElements = 1.0e18;

/// Elements of the widest tensor of a micro step, for each token of the sequence.
double elements_per_token(const workload::Transformer& model, const strategies::Plan& plan) {
  const auto widest = static_cast<double>(std::max({model.hidden, model.ffn, model.vocab}));
  return static_cast<double>(plan.micro_batch) * static_cast<double>(plan.mesh.size(MeshAxis::data)) * widest * 8.0;
}

/// Numbers that are sane alone and absurd together.
void check_sizes(Section& section, const PlanContext& context, const strategies::Plan& plan) {
  constexpr std::int64_t kMostLayerRuns = 1 << 18;
  const workload::Transformer& model = *context.model;
  // A token has top_k copies of its hidden state among the experts, and a score for each expert.
  const workload::MoeSpec moe = model.moe.value_or(workload::MoeSpec{});
  const auto widest = static_cast<double>(
      std::max({model.hidden, model.ffn, model.vocab, moe.experts, moe.top_k * std::max(model.hidden, moe.expert_ffn),
                moe.shared_experts * moe.shared_ffn}));
  const double tokens = static_cast<double>(plan.sequence_length) * static_cast<double>(plan.micro_batch) *
                        static_cast<double>(plan.mesh.size(MeshAxis::data));
  if (static_cast<double>(plan.sequence_length) * elements_per_token(model, plan) > kMostElements) {
    section.error_here(fmt::format("{:.3g} tokens in one micro step of a model {:.3g} wide are more than can be held",
                                   tokens, widest));
  }
  if (plan.accumulation > kMostMicroSteps || plan.accumulation * model.layers > kMostLayerRuns) {
    section.error_here(
        fmt::format("{} micro steps of {} layers are more than one step is simulated with (at most {} "
                    "micro steps and {} layers in all)",
                    plan.accumulation, model.layers, kMostMicroSteps, kMostLayerRuns));
  }
}

}  // namespace

std::int64_t longest_sequence(const workload::Transformer& model, const strategies::Plan& plan) {
  const double held = kMostElements / elements_per_token(model, plan);
  return held < static_cast<double>(kLongestSequence) ? static_cast<std::int64_t>(held) : kLongestSequence;
}

std::string derived_name(const PlanEntry& entry) {
  std::vector<std::string> parts;
  if (entry.plan.mesh.expert > 1) {
    parts.push_back(fmt::format("{}={}", name(MeshAxis::expert), entry.plan.mesh.expert));
  }
  for (const MeshAxis axis : workload::kAxes) {
    if (entry.plan.mesh.size(axis) > 1) {
      parts.push_back(fmt::format("{}={}", name(axis), entry.plan.mesh.size(axis)));
    }
  }
  if (parts.empty()) {
    parts.emplace_back("data=1");
  }
  if (entry.plan.mesh.replicate > 1) {
    parts.push_back(fmt::format("data_replicate={}", entry.plan.mesh.replicate));
  }
  const PlanEntry standard{};
  const auto standard_options = options_of(standard);
  const auto is_standard = [&](const std::pair<std::string, std::string>& option) {
    return std::find(standard_options.begin(), standard_options.end(), option) != standard_options.end();
  };
  for (const auto& [key, value] : options_of(entry)) {
    const bool placed = key == "placement" && entry.plan.mesh.placement != standard.plan.mesh.placement;
    const bool chunked =
        (key == "virtual_stages" && entry.plan.virtual_stages > 1) || key == "head_chunks" || key == "sequence_chunk";
    const bool of_plan = key == "ring_layout" || key == "ring_exchange";
    const bool overridden = std::find(entry.overridden.begin(), entry.overridden.end(), key) != entry.overridden.end();
    if (overridden || placed || chunked || (of_plan && !is_standard({key, value}))) {
      parts.push_back(fmt::format("{}={}", key, value));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

PlanEntry read_plan(const config::Node& node, const std::string& path, Training training, const PlanContext& context,
                    Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  Section section(node, path, {"plan", "training"}, diagnostics);
  read_training(section, training);
  PlanEntry entry{.plan = training.options,
                  .total_tokens = training.total_tokens,
                  .padding = training.padding,
                  .overridden = training_keys_in(node)};
  read_degrees(section, context, entry.plan.mesh);
  read_ring_options(section, entry.plan);
  read_chunks(section, entry.plan);
  read_schedule(section, entry.plan);
  read_placement(section, entry.plan.mesh);
  pad(training.padding, entry.plan);
  resolve_adapters(section, training, entry.plan);
  const auto own_name = section.maybe<std::string>("name");
  section.finish();
  if (entry.plan.sequence_length == 0 && diagnostics.list().size() == before) {
    section.error_here("missing 'sequence_length', here or in 'training'");
  }
  entry.framework = context.framework(training, diagnostics);
  if (diagnostics.list().size() != before) {
    return entry;
  }
  resolve_batch(section, training, entry.plan);
  if (context.model != nullptr) {
    check_sizes(section, context, entry.plan);
  }
  if (own_name && (own_name->empty() || own_name->size() > 100)) {
    section.error("name", "a name has 1 to 100 characters");
  }
  entry.plan.name = own_name.value_or(derived_name(entry));
  return entry;
}

}  // namespace ulysim::scenario

// The graph that each pass makes of one small model, as text: the logical graph, one plan for each strategy with no
// other pass at work than those it builds on, and one plan with everything on.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/workload/dump.h"
#include "tests/golden/golden.h"
#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

/// Two layers, 8 query and 4 key/value heads of 64: a Llama in small, or a Mixtral.
lab::Bench tiny(Plan plan, std::optional<MoeSpec> moe = std::nullopt) {
  Transformer t{.name = "tiny",
                .model_type = "llama",
                .layers = 2,
                .hidden = 512,
                .heads = 8,
                .kv_heads = 4,
                .head_dim = 64,
                .ffn = 1024,
                .vocab = 32000,
                .max_positions = 8192};
  t.layer_specs.resize(2, LayerSpec{.moe = moe.has_value()});
  t.moe = moe;
  return {.model = std::move(t), .framework = lab::framework(), .plan = std::move(plan)};
}

struct Example {
  std::string name;  ///< of the golden, and of the pass that it cannot do without
  Plan plan;
  std::vector<std::string> passes;
  std::optional<MoeSpec> moe{};
};

std::ostream& operator<<(std::ostream& out, const Example& example) {
  return out << example.name;
}

Plan with(MeshAxis axis, std::int64_t degree) {
  Plan plan = lab::plain_plan(8192);
  plan.mesh.set_size(axis, degree);
  return plan;
}

std::vector<Example> examples() {
  std::vector<Example> all;
  all.push_back({"data", with(MeshAxis::data, 2), {"data"}});
  all.push_back({"tensor", with(MeshAxis::tensor, 4), {"tensor"}});
  all.push_back({"ulysses", with(MeshAxis::ulysses, 8), {"ulysses"}});
  all.push_back({"ring", with(MeshAxis::ring, 2), {"ring"}});
  Plan rounds = with(MeshAxis::ulysses, 2);
  rounds.head_chunks = 2;
  all.push_back({"head-chunks", rounds, {"head-chunks", "ulysses"}});
  Plan chunks = with(MeshAxis::ulysses, 2);
  chunks.sequence_chunk = 2048;
  all.push_back({"sequence-chunks", chunks, {"ulysses", "sequence-chunks"}});
  Plan expert = with(MeshAxis::data, 4);
  expert.mesh.set_size(MeshAxis::expert, 2);
  all.push_back({"expert",
                 expert,
                 {"data", "expert"},
                 MoeSpec{.experts = 4, .top_k = 2, .expert_ffn = 256, .shared_experts = 1, .shared_ffn = 512}});
  Plan stages = with(MeshAxis::pipeline, 2);
  stages.accumulation = 3;
  all.push_back({"pipeline", stages, {"pipeline"}});
  all.push_back({"schedule", stages, {"pipeline", "schedule"}});
  Plan tiled = lab::plain_plan(8192);
  tiled.tiled_mlp = tiled.tiled_loss = true;
  all.push_back({"tiling", tiled, {"tiling"}});
  Plan recompute = lab::plain_plan(8192);
  recompute.recompute = Recompute::full;
  all.push_back({"recompute", recompute, {"recompute"}});
  recompute.checkpoint_offload = Offload::cpu;
  all.push_back({"checkpoint-offload", recompute, {"recompute", "checkpoint-offload"}});
  Plan zero = with(MeshAxis::data, 4);
  zero.zero = 3;
  zero.accumulation = 2;
  all.push_back({"zero", zero, {"data", "zero"}});
  Plan muon = zero;
  muon.optimizer = Optimizer::muon;
  all.push_back({"optimizer", muon, {"data", "zero", "optimizer"}});
  zero.optimizer_offload = Offload::cpu;
  all.push_back({"optimizer-offload", zero, {"data", "zero", "optimizer-offload"}});
  return all;
}

class StrategyGolden : public testing::TestWithParam<Example> {};

TEST_P(StrategyGolden, graph_is_as_reviewed) {
  const Example& example = GetParam();
  ASSERT_TRUE(lab::has(example.name));
  for (const std::string& name : example.passes) {
    if (!lab::has(name)) {
      GTEST_SKIP() << "it builds on " << name << ", which is not in the catalogue";
    }
  }
  golden::compare("strategies/" + example.name + ".graph", dump(tiny(example.plan, example.moe).after(example.passes)));
}

INSTANTIATE_TEST_SUITE_P(Strategies, StrategyGolden, testing::ValuesIn(examples()), [](const auto& each) {
  std::string name = each.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Golden, logical_graph_is_as_reviewed) {
  golden::compare("strategies/logical.graph", dump(tiny(lab::plain_plan(8192)).after({})));
}

TEST(Golden, everything_together_is_as_reviewed) {
  if (strategies().size() < examples().size()) {
    GTEST_SKIP() << "a pass is not in the catalogue";
  }
  Plan plan = lab::plain_plan(8192);
  for (const MeshAxis axis : kAxes) {
    plan.mesh.set_size(axis, axis == MeshAxis::pipeline ? 1 : 2);
  }
  plan.zero = 3;  // which no pipeline takes
  plan.recompute = Recompute::full;
  plan.checkpoint_offload = plan.optimizer_offload = Offload::cpu;
  plan.tiled_mlp = plan.tiled_loss = true;
  const lab::Bench bench = tiny(plan);
  golden::compare("strategies/everything.graph", dump(parallelize(bench.context(), bench.logical())));
}

}  // namespace
}  // namespace ulysim::strategies

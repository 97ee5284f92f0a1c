// Recompute runs the forward of each layer again in front of its backward, with the collectives of tensor, Ulysses and
// ring, and not with ZeRO's gathers (those are shared with backward: zero_test.cpp).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

Plan recomputing(Recompute recompute, MeshAxis axis, std::int64_t degree) {
  Plan plan = lab::plain_plan(65536);
  plan.mesh.set_size(axis, degree);
  plan.recompute = recompute;
  return plan;
}

/// A pass whose collectives are repeated.
struct Repeated {
  const char* pass;
  MeshAxis axis;
  Purpose purpose;
};

std::ostream& operator<<(std::ostream& out, const Repeated& repeated) {
  return out << repeated.pass;
}

class RecomputeTest : public testing::TestWithParam<Repeated> {};

TEST_P(RecomputeTest, full_repeats_the_forward_collectives) {
  const auto [pass, axis, purpose] = GetParam();
  if (!lab::has(pass)) {
    GTEST_SKIP() << pass << " is not in the catalogue";
  }
  const OpGraph graph = lab::bench("llama-3.1-8b", recomputing(Recompute::full, axis, 4)).after({pass, "recompute"});
  const double forward = lab::sent(graph, {.phase = Phase::forward, .purpose = purpose});
  EXPECT_GT(forward, 0);
  EXPECT_EQ(lab::sent(graph, {.phase = Phase::backward, .purpose = purpose, .recomputed = true}), forward);
}

INSTANTIATE_TEST_SUITE_P(Passes, RecomputeTest,
                         testing::Values(Repeated{"tensor", MeshAxis::tensor, Purpose::tensor_parallel},
                                         Repeated{"ulysses", MeshAxis::ulysses, Purpose::ulysses},
                                         Repeated{"ring", MeshAxis::ring, Purpose::ring}),
                         [](const auto& each) { return std::string(each.param.pass); });

TEST(Recompute, with_tensor_parallelism_makes_fourteen_collectives) {
  if (!lab::has("tensor")) {
    GTEST_SKIP() << "tensor is not in the catalogue";
  }
  // 4 forward, 4 of them again, 6 backward (arXiv 2205.05198 and Megatron-LM core/recompute.py).
  const OpGraph graph =
      lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::tensor, 4)).after({"tensor", "recompute"});
  std::int64_t number = 0;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (const bool again : {false, true}) {
      for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
        number += lab::count(lab::layer_of(graph),
                             {.phase = phase, .purpose = Purpose::tensor_parallel, .recomputed = again}, kind);
      }
    }
  }
  EXPECT_EQ(number, 14);
}

TEST(Recompute, keeping_attention_runs_no_second_attention) {
  const OpGraph graph =
      lab::bench("llama-3.1-8b", recomputing(Recompute::full_keep_attention, MeshAxis::data, 1)).after({"recompute"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::int64_t attention = 0;
  std::int64_t gemms = 0;
  for (const Op& op : layer.body(Phase::backward).ops) {
    if (op.recomputed) {
      attention += std::holds_alternative<AttentionWork>(op.work) ? 1 : 0;
      gemms += std::holds_alternative<GemmWork>(op.work) ? 1 : 0;
    }
  }
  EXPECT_EQ(attention, 0);
  EXPECT_EQ(gemms, 6) << "q, k, v, o, gate, up; nothing in backward reads what down gives";
  // Between forward and backward stay the layer's input, the output of attention and its statistics (DistFlashAttn,
  // arXiv 2310.03294 §3.3): freed in backward though written in forward.
  std::set<std::size_t> written;
  for (const Op& op : layer.body(Phase::forward).ops) {
    for (const TensorId id : op.allocs) {
      written.insert(id.index());
    }
  }
  std::vector<std::string> kept;
  for (const Op& op : layer.body(Phase::backward).ops) {
    for (const TensorId id : op.frees) {
      if (written.count(id.index()) != 0) {
        kept.push_back(layer.tensor(id).name);
      }
    }
  }
  EXPECT_THAT(kept, testing::UnorderedElementsAre("o", "lse"));
}

TEST(Recompute, full_keeps_nothing_but_the_input) {
  const OpGraph graph =
      lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::data, 1)).after({"recompute"});
  const BlockTemplate& layer = lab::layer_of(graph);
  std::int64_t open = 0;
  for (const Op& op : layer.body(Phase::forward).ops) {
    open += static_cast<std::int64_t>(op.allocs.size()) - static_cast<std::int64_t>(op.frees.size());
  }
  EXPECT_EQ(open, 1) << "the output, which is the next layer's checkpoint";
  for (const Tensor& each : layer.tensors) {
    EXPECT_EQ(each.kind == MemoryKind::checkpoints, each.port == Port::input) << each.name;
  }
}

TEST(Recompute, executes_one_more_forward) {
  const lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::data, 1));
  const OpGraph plain = bench.after({});
  const OpGraph twice = bench.after({"recompute"});
  // Matrices: 8/6 of them in layers, head not recomputed; attention forward 4, backward 10, again 4 units.
  double forward = 0;
  const BlockTemplate& layer = lab::layer_of(plain);
  for (const Op& op : layer.body(Phase::forward).ops) {
    if (op.purpose == Purpose::gemm || op.purpose == Purpose::attention) {
      forward += kernel::executed_flops(kernel_of(plain, layer, layer.body(Phase::forward), op, {})).value();
    }
  }
  EXPECT_DOUBLE_EQ(executed_flops(twice).value() - executed_flops(plain).value(), 2 * forward) << "two layers";
  EXPECT_EQ(model_flops(twice).value(), model_flops(plain).value());
}

TEST(Recompute, selective_repeats_core_attention_only_where_the_framework_has_it) {
  lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::selective, MeshAxis::data, 1));
  bench.framework.selective_recompute.value = spec::SelectiveRecompute::nothing;
  EXPECT_EQ(lab::pass("recompute").check(bench.context()).size(), 1U);
  bench.framework.selective_recompute.value = spec::SelectiveRecompute::core_attention;
  EXPECT_TRUE(lab::pass("recompute").check(bench.context()).empty());
  const OpGraph graph = bench.after({"recompute"});
  std::vector<std::string> again;
  for (const Op& op : lab::layer_of(graph).body(Phase::backward).ops) {
    if (op.recomputed) {
      again.push_back(op.name);
    }
  }
  EXPECT_THAT(again, testing::ElementsAre("attention_again"));
}

TEST(Recompute, early_stop_ends_at_the_last_tensor_that_backward_reads) {
  lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::data, 1));
  bench.framework.recompute_early_stop.value = 1;
  const OpGraph graph = bench.after({"recompute"});
  for (const Op& op : lab::layer_of(graph).body(Phase::backward).ops) {
    EXPECT_NE(op.name, "down_proj_again");
    EXPECT_NE(op.name, "residual1_again");
  }
}

}  // namespace
}  // namespace ulysim::strategies

// Recompute runs the forward of each layer again in front of its backward, with the collectives of tensor, Ulysses and
// ring, and not with ZeRO's gathers (those are shared with backward: zero_test.cpp).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "sim/workload/dump.h"
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

TEST(Recompute, a_reentrant_checkpoint_holds_its_ends_to_the_end) {
  // The inputs, the outputs made again and their gradient: under DeepSpeed until the last op has written d_x.
  for (const auto& [name, held] : {std::pair{"deepspeed-hf", true}, std::pair{"trl-fsdp2", false}}) {
    lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::data, 1));
    bench.framework = lab::framework(name);
    const OpGraph graph = bench.after({"recompute"});
    const BlockTemplate& layer = lab::layer_of(graph);
    const std::vector<Op>& ops = layer.body(Phase::backward).ops;
    const auto last = std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.name == "norm_backward"; });
    ASSERT_NE(last, ops.end());
    std::set<std::string> freed;
    for (const TensorId id : last->frees) {
      freed.insert(layer.tensor(id).name);
    }
    EXPECT_EQ(freed.count("d_y"), held ? 1U : 0U) << name;
    EXPECT_EQ(freed.count("y_again"), held ? 1U : 0U) << name;
  }
}

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

double forward_flops(const OpGraph& graph, const std::set<std::string>& names) {
  const BlockTemplate& layer = lab::layer_of(graph);
  double sum = 0;
  for (const Op& op : layer.body(Phase::forward).ops) {
    if ((op.purpose == Purpose::gemm || op.purpose == Purpose::attention) &&
        (names.empty() || names.count(op.name) != 0)) {
      sum += kernel::executed_flops(kernel_of(graph, layer, layer.body(Phase::forward), op, {})).value();
    }
  }
  return sum;
}

TEST(Recompute, of_some_layers_costs_their_forward_and_leaves_the_others_alone) {
  lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::data, 1), 5);
  const OpGraph plain = bench.after({});
  bench.plan.recompute_layers = 2;
  const OpGraph some = bench.after({"recompute"});
  EXPECT_DOUBLE_EQ(executed_flops(some).value() - executed_flops(plain).value(), 2 * forward_flops(plain, {}));
  EXPECT_EQ(model_flops(some).value(), model_flops(plain).value());
  std::map<bool, std::int64_t> layers;  // by whether they keep a checkpoint
  for (const BlockTemplate& block : some.templates) {
    if (block.kind == BlockKind::layer) {
      layers[std::any_of(block.tensors.begin(), block.tensors.end(), [](const Tensor& tensor) {
        return tensor.kind == MemoryKind::checkpoints;
      })] += block.instances;
    }
  }
  EXPECT_EQ(layers, (std::map<bool, std::int64_t>{{false, 3}, {true, 2}}));
  EXPECT_EQ(some.of(some.roles[0].program[1]).name, "layer") << "the first layers recompute";
  EXPECT_EQ(some.of(some.roles[0].program[5]).name, "layer_kept");
  EXPECT_THAT(verify(some), testing::IsEmpty());
  // All of them: the same graph as full.
  bench.plan.recompute_layers = 5;
  const OpGraph all = bench.after({"recompute"});
  bench.plan.recompute_layers.reset();
  EXPECT_EQ(dump(all), dump(bench.after({"recompute"})));
}

TEST(Recompute, of_some_layers_is_shared_evenly_by_the_stages) {
  lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::pipeline, 2), 4);
  bench.plan.recompute_layers = 2;
  const OpGraph graph = bench.after({"pipeline", "recompute"});
  for (const Role& role : graph.roles) {
    std::vector<std::string> names;
    for (const Instance& instance : role.program) {
      if (instance.phase == Phase::forward && graph.of(instance).kind == BlockKind::layer) {
        names.push_back(graph.of(instance).name);
      }
    }
    EXPECT_THAT(names, testing::ElementsAre("layer", "layer_kept")) << role.name;
  }
  bench.plan.recompute_layers = 3;
  EXPECT_EQ(lab::pass("recompute").check(bench.context()).size(), 1U) << "3 layers over 2 stages";
  bench.plan.recompute_layers = 6;
  EXPECT_EQ(lab::pass("recompute").check(bench.context()).size(), 1U) << "6 of 4 layers";
}

TEST(Recompute, selective_repeats_every_second_product_where_that_is_the_list) {
  // torchtitan keeps the first, third, fifth, seventh product of a layer, and attention: k, o and up run again.
  lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::selective, MeshAxis::data, 1));
  bench.framework.selective_recompute.value = spec::SelectiveRecompute::every_second_gemm;
  const OpGraph plain = bench.after({});
  const OpGraph graph = bench.after({"recompute"});
  std::vector<std::string> again;
  for (const Op& op : lab::layer_of(graph).body(Phase::backward).ops) {
    if (op.recomputed && !std::holds_alternative<ElementwiseWork>(op.work)) {
      again.push_back(op.name);
    }
  }
  EXPECT_THAT(again, testing::ElementsAre("k_proj_again", "o_proj_again", "up_proj_again"));
  EXPECT_DOUBLE_EQ(executed_flops(graph).value() - executed_flops(plain).value(),
                   2 * forward_flops(plain, {"k_proj", "o_proj", "up_proj"}));
  // What stays to backward of a layer is less than without recompute and more than its input.
  const auto kept = [](const OpGraph& of) {
    const BlockTemplate& layer = lab::layer_of(of);
    std::int64_t bytes = 0;
    for (const Op& op : layer.body(Phase::forward).ops) {
      for (const TensorId id : op.allocs) {
        bytes += local_bytes(layer.tensor(id), of.mesh).value();
      }
      for (const TensorId id : op.frees) {
        bytes -= local_bytes(layer.tensor(id), of.mesh).value();
      }
    }
    return bytes;
  };
  // q and v of 4096 and 1024, o, gate of 14336, down of 4096, and fp32 statistics of 32 heads; the output goes on.
  EXPECT_EQ(kept(graph), 65536LL * (2 * (4096 + 1024 + 4096 + 14336 + 4096 + 4096) + 4 * 32));
  EXPECT_GT(kept(plain), kept(graph));
  EXPECT_THAT(verify(graph), testing::IsEmpty());
  // Compiled, nothing is kept that backward does not read: not the output of down.
  bench.framework.recompute_reentrant.value = 0;
  bench.framework.recompute_early_stop.value = 1;
  EXPECT_EQ(kept(graph) - kept(bench.after({"recompute"})), 65536LL * 2 * 4096);
}

TEST(Recompute, early_stop_ends_at_the_last_tensor_that_backward_reads) {
  lab::Bench bench = lab::bench("llama-3.1-8b", recomputing(Recompute::full, MeshAxis::data, 1));
  bench.framework.recompute_reentrant.value = 0;
  bench.framework.recompute_early_stop.value = 1;
  const OpGraph graph = bench.after({"recompute"});
  for (const Op& op : lab::layer_of(graph).body(Phase::backward).ops) {
    EXPECT_NE(op.name, "down_proj_again");
    EXPECT_NE(op.name, "residual1_again");
  }
}

}  // namespace
}  // namespace ulysim::strategies

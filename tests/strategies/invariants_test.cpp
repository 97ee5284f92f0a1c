// Laws of the passes over every plan that check() lets through.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/workload/dump.h"
#include "sim/workload/unroll.h"
#include "tests/strategies/lab.h"

namespace ulysim::strategies {
namespace {

using namespace workload;

constexpr std::array kModels{"llama-3.1-8b", "llama-2-7b",   "qwen2.5-7b",      "gpt2",
                             "gemma-2-9b",   "falcon-7b",    "mistral-7b-v0.1", "mpt-7b",
                             "gpt-neox-20b", "mixtral-8x7b", "qwen3-30b-a3b",   "deepseek-v3"};

/// Axes whose pass is in the catalogue; the others stay at 1.
std::vector<MeshAxis> axes() {
  std::vector<MeshAxis> found;
  for (const MeshAxis axis : kAxes) {
    if (lab::has(name(axis))) {
      found.push_back(axis);
    }
  }
  return found;
}

std::string text(const lab::Bench& bench) {
  const Plan& p = bench.plan;
  return fmt::format(
      "{} tensor {} ulysses {} ring {} data {} pipeline {} chunks {} expert {} layout {} exchange {} tokens {} batch "
      "{} "
      "accumulation {} attention {} "
      "heads in {} chunk {} mask {} recompute {} checkpoint offload {} zero {} optimizer offload {} parameter offload "
      "{} replicate {} tiled "
      "mlp {} loss {} pattern {} window "
      "{} documents {} recompute layers {} optimizer {} precision {} adapters {}",
      bench.model.name, p.mesh.sizes[0], p.mesh.sizes[1], p.mesh.sizes[2], p.mesh.sizes[3], p.mesh.sizes[4],
      p.virtual_stages, p.mesh.expert, name(p.ring_layout), static_cast<int>(p.ring_exchange), p.sequence_length,
      p.micro_batch, p.accumulation, static_cast<int>(p.attention), p.head_chunks, p.sequence_chunk.value_or(0),
      static_cast<int>(p.mask), static_cast<int>(p.recompute), static_cast<int>(p.checkpoint_offload), p.zero,
      static_cast<int>(p.optimizer_offload), static_cast<int>(p.parameter_offload), p.mesh.replicate, p.tiled_mlp,
      p.tiled_loss, p.block_sparse ? describe(*p.block_sparse) : "-", p.sliding_window.value_or(0),
      p.documents ? p.documents->size() : 0, p.recompute_layers.value_or(0), static_cast<int>(p.optimizer),
      static_cast<int>(p.gemm_precision),
      p.adapters ? fmt::format("{} of {} base {}", p.adapters->rank, p.adapters->targets.size(),
                               static_cast<int>(p.adapters->base))
                 : "-");
}

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {
    for (const char* name : kModels) {
      // The first three layers of deepseek-v3 are dense; a fourth has experts.
      models_.push_back(lab::short_model(name, 4));
    }
    for (const std::string& name : lab::catalog().framework_names()) {
      frameworks_.push_back(lab::framework(name));
    }
  }

  /// A plan that check() lets through.
  lab::Bench legal() {
    while (true) {
      lab::Bench bench = any();
      if (check(bench.whole_plan()).empty()) {
        return bench;
      }
    }
  }

 private:
  std::size_t pick(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
  template <class Enum>
  Enum pick_enum(std::size_t values) {
    return static_cast<Enum>(pick(values));
  }

  lab::Bench any() {
    lab::Bench bench{.model = models_[pick(models_.size())], .framework = frameworks_[pick(frameworks_.size())]};
    // What profiles of other stacks say: no threshold, no prefetch, selective recompute, early stop.
    spec::Framework& f = bench.framework;
    f.persistence_elements.value = pick(2) == 0 ? 0 : f.persistence_elements.value;
    f.prefetch_units.value = static_cast<std::int64_t>(pick(3));
    f.reuse_distance_elements.value = pick(4) == 0 ? 1000 : f.reuse_distance_elements.value;
    f.selective_recompute.value = pick_enum<spec::SelectiveRecompute>(3);
    f.checkpoint_offload_keep_last.value = static_cast<std::int64_t>(pick(3));
    f.recompute_early_stop.value = static_cast<std::int64_t>(pick(2));
    f.gradient_bytes.value = pick(2) == 0 ? 2 : 4;
    f.checkpoint_offload_copy.value = pick_enum<spec::CopyMode>(2);
    f.overlap_gradient_reduction.value = static_cast<std::int64_t>(pick(2));
    f.overlap_parameter_gather.value = static_cast<std::int64_t>(pick(2));
    f.last_unit_stays_gathered.value = static_cast<std::int64_t>(pick(2));
    f.root_unit_stays_gathered.value = static_cast<std::int64_t>(pick(2));
    f.ring_steps_through_gathered.value = static_cast<std::int64_t>(pick(2));
    f.ring_overlaps.value = static_cast<std::int64_t>(pick(2));
    f.pipeline_receive_buffers.value = static_cast<std::int64_t>(pick(2));
    f.gather_unit.value = pick_enum<spec::GatherUnit>(2);
    Plan& plan = bench.plan;
    for (const MeshAxis axis : axes()) {
      plan.mesh.set_size(axis, static_cast<std::int64_t>(pick(3) == 0 ? 1 + pick(8) : std::size_t{1} << pick(4)));
    }
    if (bench.model.moe) {
      plan.mesh.set_size(MeshAxis::expert, std::int64_t{1} << pick(5));
      plan.expert_imbalance = pick(4) == 0 ? 1.25 : 1.0;
    }
    plan.virtual_stages = plan.mesh.size(MeshAxis::pipeline) > 1 && pick(4) == 0 ? 2 : 1;
    plan.ring_layout = pick_enum<Layout>(3);
    plan.ring_exchange = pick_enum<RingExchange>(2);
    constexpr std::array<std::int64_t, 4> kLengths{1680, 8192, 53760, 131072};  // 1680 and 53,760: many divisors
    plan.sequence_length = kLengths.at(pick(kLengths.size()));
    plan.micro_batch = static_cast<std::int64_t>(1 + pick(3));
    plan.accumulation = static_cast<std::int64_t>(1 + pick(3));
    plan.attention = pick_enum<kernel::AttentionKernel>(4);
    plan.mask = pick_enum<Mask::Kind>(2);
    pick_pattern(plan);
    plan.recompute = pick_enum<Recompute>(4);
    plan.checkpoint_offload = pick_enum<Offload>(3);
    if (plan.recompute == Recompute::full && pick(2) == 0) {
      plan.recompute_layers = static_cast<std::int64_t>(1 + pick(4));
    }
    plan.zero = static_cast<std::int64_t>(pick(4));
    plan.optimizer_offload = pick_enum<Offload>(3);
    plan.optimizer = pick(4) == 0 ? Optimizer::muon : Optimizer::adamw;
    plan.parameter_offload = pick(4) == 0 ? Offload::cpu : Offload::none;
    plan.mesh.replicate = pick(3) == 0 ? std::int64_t{1} << (1 + pick(3)) : 1;
    plan.tiled_mlp = pick(2) == 0;
    plan.tiled_loss = pick(2) == 0;
    if (pick(3) == 0) {
      plan.head_chunks = static_cast<std::int64_t>(1 + pick(8));
    } else if (pick(3) == 0) {
      plan.sequence_chunk = plan.sequence_length / static_cast<std::int64_t>(1 + pick(6));
      plan.mesh.set_size(MeshAxis::ring, 1);
    }
    pick_weights(bench);
    return bench;
  }

  /// Half of the plans: low-precision products, adapters, or both.
  void pick_weights(lab::Bench& bench) {
    if (pick(4) == 0) {
      bench.plan.gemm_precision = static_cast<kernel::Precision>(1 + pick(3));
      bench.framework.quantised_gather.value = static_cast<std::int64_t>(pick(2));
    }
    if (pick(4) == 0) {
      bench.plan.adapters = Adapters{.rank = 8, .base = pick_enum<BaseWeights>(2)};
      if (pick(2) == 0) {
        bench.plan.adapters->targets = {"q_proj", "v_proj", "down_proj"};
      }
    }
  }

  /// Half of the plans: a window, blocks, or documents packed together.
  void pick_pattern(Plan& plan) {
    const std::size_t kind = pick(8);
    if (kind == 0 && plan.mask == Mask::Kind::causal) {
      plan.sliding_window = static_cast<std::int64_t>(1 + pick(5000));
    } else if (kind == 1) {
      plan.block_sparse = BlockSparse{.block = 64, .local = 3, .global = 1, .stride = 16};
    } else if (kind == 2 && plan.mask == Mask::Kind::causal) {
      plan.block_sparse = BlockSparse{.block = 128, .density = 0.25, .seed = pick(100)};
    } else if (kind == 3) {
      plan.documents = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{100, 700, 2000});
    }
  }

  std::mt19937 random_;
  std::vector<Transformer> models_;
  std::vector<spec::Framework> frameworks_;
};

/// What the run of all micro-batches allocates and does not free, or frees twice.
std::string books(const OpGraph& graph, std::size_t role) {
  const Schedule schedule = unroll(graph, role);
  const auto& program = graph.roles[role].program;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, int> held;
  for (const FlatOp& flat : schedule.ops) {
    const Instance& instance = program[flat.instance];
    const BlockTemplate& block = graph.of(instance);
    const auto account = [&](TensorId id) -> int& {
      const Tensor& tensor = block.tensor(id);
      // A port is one tensor with two names: as the block that hands it on calls it.
      const std::int32_t owner =
          instance.block - (tensor.port == Port::input ? 1 : 0) + (tensor.port == Port::grad_output ? 1 : 0);
      const bool activation = tensor.port == Port::input || tensor.port == Port::output;
      const std::string called = tensor.port == Port::none ? tensor.name : activation ? "->" : "<-";
      if (tensor.port == Port::tied_output || tensor.port == Port::tied_input) {
        return held[{instance.micro_batch, -1, "tied"}];
      }
      return held[{instance.micro_batch, owner, called}];
    };
    for (const TensorId id : flat.op->allocs) {
      if (++account(id) != 1) {
        return flat.op->name + " allocates twice: " + block.tensor(id).name;
      }
    }
    for (const TensorId id : flat.op->frees) {
      if (--account(id) != 0) {
        return flat.op->name + " frees twice: " + block.tensor(id).name;
      }
    }
  }
  for (const auto& [key, count] : held) {
    if (count != 0) {
      return fmt::format("micro-batch {} block {} leaves {}", std::get<0>(key), std::get<1>(key), std::get<2>(key));
    }
  }
  return {};
}

/// Experts that do not get equally many rows on each rank: those are padded, or counted for the busiest. Tensor ranks
/// share rows where adapters meet.
bool has_unequal_experts(const lab::Bench& bench) {
  if (!bench.model.moe) {
    return false;
  }
  const Plan& p = bench.plan;
  const std::int64_t visits = p.sequence_length * p.micro_batch * p.mesh.size(MeshAxis::data) * bench.model.moe->top_k;
  const std::int64_t slots = (visits + bench.model.moe->experts - 1) / bench.model.moe->experts;
  const std::int64_t sharers = p.mesh.size(MeshAxis::expert_data) * (p.adapters ? p.mesh.size(MeshAxis::tensor) : 1);
  return slots % sharers != 0 || p.expert_imbalance > 1;
}

/// Whether a plan makes every rank do work that no other plan does: a key/value head for each tensor rank, a
/// vocabulary padded to equal parts, uneven experts.
bool repeats_or_pads(const lab::Bench& bench) {
  const std::int64_t t = bench.plan.mesh.size(MeshAxis::tensor);
  return t > bench.model.kv_heads || bench.model.vocab % t != 0 || has_unequal_experts(bench);
}
bool recomputes(const lab::Bench& bench) {
  const Plan& plan = bench.plan;
  const bool tiles_loss = plan.tiled_loss || bench.framework.loss_always_tiled.value != 0;
  return plan.recompute != Recompute::none || plan.tiled_mlp || plan.head_chunks > 1 || plan.sequence_chunks() > 1 ||
         (tiles_loss && bench.framework.tiled_loss_gemms.value > 3);
}

TEST(Invariants, hold_for_every_legal_plan) {
  constexpr std::uint32_t kSeed = 20240617;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Generator generator(kSeed);
  std::set<std::string> seen;
  std::map<std::int64_t, int> stages;
  int rounds = 0;
  int chunks = 0;
  for (int i = 0; i < 1500; ++i) {
    const lab::Bench bench = generator.legal();
    SCOPED_TRACE(text(bench));
    seen.insert(bench.model.name);
    ++stages[bench.plan.mesh.size(MeshAxis::pipeline)];
    rounds += bench.plan.head_chunks > 1 ? 1 : 0;
    chunks += bench.plan.sequence_chunks() > 1 ? 1 : 0;
    const OpGraph logical = bench.logical();
    OpGraph parallel;
    // parallelize() runs verify() and throws when it finds anything.
    ASSERT_NO_THROW(parallel = parallelize(bench.whole_plan(), logical));
    const double model = model_flops(logical).value();
    ASSERT_NEAR(model_flops(parallel).value() / model, 1, 1e-12);
    const double executed = executed_flops(parallel).value() / executed_flops(logical).value();
    if (recomputes(bench) || bench.plan.optimizer == Optimizer::muon) {
      ASSERT_GE(executed, 1 - 1e-12);
    } else if (!repeats_or_pads(bench)) {
      ASSERT_NEAR(executed, 1, 1e-12);
    }
    for (std::size_t role = 0; role < parallel.roles.size(); ++role) {
      ASSERT_EQ(books(parallel, role), "");
    }
  }
  if (axes().size() < kAxes.size() || !lab::has("head-chunks") || !lab::has("sequence-chunks")) {
    return;  // fewer passes leave other plans to draw
  }
  EXPECT_EQ(seen.size(), kModels.size()) << "every model has legal plans";
  EXPECT_GT(rounds, 50) << "plans with head chunks";
  EXPECT_GT(chunks, 25) << "plans with sequence chunks";
  for (const std::int64_t degree : {2, 3, 4}) {
    EXPECT_GT(stages[degree], 10) << "pipelines of " << degree;
  }
}

TEST(Invariants, each_option_meets_each_other_on_a_small_machine) {
  // Degrees 1 and 2 on every axis with every option: a model of two layers, small enough to try all of them.
  std::int64_t legal = 0;
  lab::Bench bench = lab::bench("llama-3.1-8b", lab::plain_plan(16384), 2);
  bench.framework.selective_recompute.value = spec::SelectiveRecompute::core_attention;
  const std::vector<MeshAxis> found = axes();
  for (std::uint32_t bits = 0; bits < 1U << (found.size() + 5); ++bits) {
    Plan& plan = bench.plan;
    for (std::size_t i = 0; i < found.size(); ++i) {
      plan.mesh.set_size(found[i], (bits >> i & 1U) != 0 ? 2 : 1);
    }
    const std::uint32_t options = bits >> found.size();
    plan.tiled_mlp = (options & 1U) != 0;
    plan.tiled_loss = (options & 2U) != 0;
    plan.ring_exchange = (options & 4U) != 0 ? RingExchange::all_gather : RingExchange::p2p;
    plan.checkpoint_offload = (options & 8U) != 0 ? Offload::cpu : Offload::none;
    plan.optimizer_offload = (options & 16U) != 0 ? Offload::cpu : Offload::none;
    for (const Recompute recompute :
         {Recompute::none, Recompute::selective, Recompute::full, Recompute::full_keep_attention}) {
      for (const std::int64_t zero : {0, 1, 2, 3}) {
        plan.recompute = recompute;
        plan.zero = zero;
        if (!check(bench.whole_plan()).empty()) {
          continue;
        }
        ++legal;
        ASSERT_NO_THROW((void)parallelize(bench.whole_plan(), bench.logical())) << text(bench);
      }
    }
  }
  EXPECT_GT(legal, 1000);
}

TEST(Invariants, a_degree_of_one_is_the_identity) {
  for (const char* name : kModels) {
    const lab::Bench bench = lab::bench(name, lab::plain_plan(16384));
    OpGraph graph = bench.logical();
    const std::string before = dump(graph);
    for (const Strategy* each : strategies()) {
      for (const std::int64_t zero : {0, 1, 2, 3}) {
        lab::Bench alone = bench;
        alone.plan.zero = zero;
        each->apply(alone.context(), graph);
      }
      ASSERT_EQ(dump(graph), before) << name << " after " << each->name();
    }
  }
}

}  // namespace
}  // namespace ulysim::strategies

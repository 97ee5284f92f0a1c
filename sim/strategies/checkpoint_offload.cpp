#include <fmt/format.h>

#include <algorithm>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Layer inputs kept for recompute live in host memory between forward and backward.
class CheckpointOffload final : public Strategy {
 public:
  std::string name() const override { return "checkpoint-offload"; }
  std::string summary() const override { return "checkpoints in host memory between forward and backward"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const bool whole =
        context.plan->recompute == Recompute::full || context.plan->recompute == Recompute::full_keep_attention;
    if (context.plan->checkpoint_offload == Offload::cpu && !whole) {
      return {{"checkpoint_offload has no checkpoints to move without full recompute", {}, "recompute: full"}};
    }
    return {};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->checkpoint_offload == Offload::none) {
      return;
    }
    const spec::Framework& framework = *context.framework;
    graph.credit_windows[static_cast<std::size_t>(CreditPool::checkpoint_fetch)] =
        1 + framework.checkpoint_offload_prefetch.value;
    for (BlockTemplate& block : graph.templates) {
      for (std::size_t i = 0; i < block.tensors.size(); ++i) {
        if (block.tensors[i].port == Port::input && block.tensors[i].kind == MemoryKind::checkpoints) {
          offload(framework, block, TensorId(i));
        }
      }
    }
  }

 private:
  static void offload(const spec::Framework& framework, BlockTemplate& block, TensorId x) {
    const bool blocking = framework.checkpoint_offload_copy.value == spec::CopyMode::blocking;
    const auto buffer = framework.checkpoint_offload_memory.value == spec::HostMemory::pinned
                            ? CopyWork::Buffer::pinned
                            : CopyWork::Buffer::pageable;
    Tensor host = like(block.tensor(x), block.tensor(x).name + "_host");
    host.space = Space::host;
    const TensorId host_id = block.add(std::move(host));
    const TensorId back = block.add(like(block.tensor(x), block.tensor(x).name + "_back"));
    const auto copy = [&](const char* name, TensorId from, TensorId to, Stream side) {
      return Op{.name = name,
                .work = CopyWork{.buffer = buffer},
                .reads = {from},
                .writes = {to},
                .stream = blocking ? Stream::compute : side,
                .purpose = Purpose::checkpoint_offload,
                .host_waits = blocking};
    };
    Body& forward = block.body(Phase::forward);
    forward.ops.insert(forward.ops.begin(), copy("offload_checkpoint", x, host_id, Stream::device_to_host));
    // The layer ends only when its input is out: at most one checkpoint waits for its copy.
    Op& last = forward.ops.back();
    last.reads.insert(last.reads.end(), {x, host_id});
    Body& backward = block.body(Phase::backward);
    Op fetch = copy("fetch_checkpoint", host_id, back, Stream::host_to_device);
    fetch.acquire = CreditPool::checkpoint_fetch;
    Op* last_reader = nullptr;
    for (Op& op : backward.ops) {
      if (reads(op, x)) {
        replace_read(op, x, back);
        last_reader = &op;
      }
    }
    last_reader->release = CreditPool::checkpoint_fetch;
    backward.ops.insert(backward.ops.begin(), std::move(fetch));
  }
};

}  // namespace

const Strategy& checkpoint_offload_strategy() {
  static const CheckpointOffload strategy;
  return strategy;
}

}  // namespace ulysim::strategies

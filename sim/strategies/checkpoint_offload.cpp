#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Layer inputs kept for recompute live in host memory, or on the node's drives, between forward and backward.
class CheckpointOffload final : public Strategy {
 public:
  std::string name() const override { return "checkpoint-offload"; }
  std::string summary() const override { return "checkpoints in host memory or on NVMe between forward and backward"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const bool whole =
        context.plan->recompute == Recompute::full || context.plan->recompute == Recompute::full_keep_attention;
    if (context.plan->checkpoint_offload != Offload::none && !whole) {
      return {{"checkpoint_offload has no checkpoints to move without full recompute", {}, "recompute: full"}};
    }
    return {};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->checkpoint_offload == Offload::none) {
      return;
    }
    const spec::Framework& framework = *context.framework;
    const bool drives = context.plan->checkpoint_offload == Offload::nvme;
    const std::int64_t ahead = framework.checkpoint_offload_prefetch.value;
    // A drive read only when it is needed would be waited for in full: one is read ahead at the least.
    window(graph, CreditPool::checkpoint_fetch) = 1 + (drives ? std::max<std::int64_t>(1, ahead) : ahead);
    window(graph, CreditPool::checkpoint_store) = 2;
    if (framework.checkpoint_offload_stash) {
      window(graph, CreditPool::checkpoint_stash) =
          std::max<std::int64_t>(1, framework.checkpoint_offload_stash->value);
    }
    const std::set<std::size_t> stay = keep_newest(framework.checkpoint_offload_keep_last.value, graph);
    for (std::size_t b = 0; b < graph.templates.size(); ++b) {
      BlockTemplate& block = graph.templates[b];
      for (std::size_t i = 0; i < block.tensors.size(); ++i) {
        if (block.tensors[i].port == Port::input && block.tensors[i].kind == MemoryKind::checkpoints) {
          LayerPass layer(framework, drives, block, TensorId(i));
          stay.count(b) == 0 ? layer.move() : layer.keep();
        }
      }
    }
  }

 private:
  static std::int64_t& window(OpGraph& graph, CreditPool pool) {
    return graph.credit_windows.at(static_cast<std::size_t>(pool));
  }

  /// Templates of the layers whose checkpoints never leave: backward wants those of the last layers at once.
  static std::set<std::size_t> keep_newest(std::int64_t count, OpGraph& graph) {
    std::set<BlockOf> newest;
    for (std::vector<BlockOf>& stage : layers_of_stages(graph)) {
      std::erase_if(stage, [&graph](const BlockOf& block) { return !has_checkpoint(graph, block); });
      const auto kept = std::min(static_cast<std::size_t>(count), stage.size());
      newest.insert(stage.end() - static_cast<std::ptrdiff_t>(kept), stage.end());
    }
    return split_templates(graph, newest, "_last");
  }

  static bool has_checkpoint(const OpGraph& graph, const BlockOf& block) {
    for (const Instance& instance : graph.roles[block.role].program) {
      if (instance.block == block.block) {
        const std::vector<Tensor>& tensors = graph.of(instance).tensors;
        return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
          return tensor.port == Port::input && tensor.kind == MemoryKind::checkpoints;
        });
      }
    }
    return false;
  }

  class LayerPass {
   public:
    LayerPass(const spec::Framework& framework, bool drives, BlockTemplate& block, TensorId x)
        : block_(block),
          x_(x),
          drives_(drives),
          // The way to the drives is by pinned buffers and streams of its own, whatever the stack does in memory
          // (SSDTrain, arXiv 2408.10013 §3).
          blocking_(!drives && framework.checkpoint_offload_copy.value == spec::CopyMode::blocking),
          pinned_(drives || framework.checkpoint_offload_memory.value == spec::HostMemory::pinned) {}

    /// What stays takes part in the count of checkpoints that are back: none is fetched earlier for it.
    void keep() {
      Body& backward = block_.body(Phase::backward);
      Op* last_reader = nullptr;
      for (Op& op : backward.ops) {
        last_reader = reads(op, x_) ? &op : last_reader;
      }
      ULYSIM_CHECK(last_reader != nullptr, "nothing in {} reads its checkpoint", block_.name);
      first_kernel(backward).acquire = CreditPool::checkpoint_fetch;
      last_reader->release.insert(CreditPool::checkpoint_fetch);
    }

    void move() {
      const TensorId out = place("_host", Space::host);
      const TensorId back = place("_back", Space::gpu);
      std::vector<Op> away{copy("offload_checkpoint", x_, out, Stream::device_to_host)};
      std::vector<Op> home;
      if (drives_) {
        const TensorId stored = place("_nvme", Space::nvme);
        const TensorId loaded = place("_loaded", Space::host);
        away.front().acquire = CreditPool::checkpoint_store;
        away.push_back(copy("store_checkpoint", out, stored, Stream::nvme_write));
        away.back().release.insert(CreditPool::checkpoint_store);
        home.push_back(copy("load_checkpoint", stored, loaded, Stream::nvme_read));
        home.push_back(copy("fetch_checkpoint", loaded, back, Stream::host_to_device));
      } else {
        home.push_back(copy("fetch_checkpoint", out, back, Stream::host_to_device));
      }
      home.front().acquire = CreditPool::checkpoint_fetch;
      send(std::move(away), out);
      bring(std::move(home), back);
    }

   private:
    TensorId place(const char* suffix, Space space) {
      Tensor tensor = like(block_.tensor(x_), block_.tensor(x_).name + suffix);
      tensor.space = space;
      tensor.pinned = space == Space::host && pinned_;
      return block_.add(std::move(tensor));
    }

    [[nodiscard]] Op copy(const char* name, TensorId from, TensorId to, Stream side) const {
      return {.name = name,
              .work = CopyWork{.buffer = pinned_ ? CopyWork::Buffer::pinned : CopyWork::Buffer::pageable},
              .reads = {from},
              .writes = {to},
              .stream = blocking_ ? Stream::compute : side,
              .purpose = Purpose::checkpoint_offload,
              .host_waits = blocking_};
    }

    void send(std::vector<Op> away, TensorId out) {
      Body& forward = block_.body(Phase::forward);
      if (blocking_) {
        // The caller's frame holds the input until the layer is done.
        forward.ops.back().reads.insert(forward.ops.back().reads.end(), {x_, out});
      } else {
        // A layer starts when the stash has a place for its input, and gives it back when the input is out and the
        // layer done: the tensor is freed then (DeepSpeed offload_activations.py, TRL activation_offloading.py).
        first_kernel(forward).acquire = CreditPool::checkpoint_stash;
        forward.ops.push_back({.name = "forget_checkpoint",
                               .work = ElementwiseWork{.launches = 0},
                               .reads = {x_, out, output()},
                               .stream = Stream::device_to_host,
                               .purpose = Purpose::checkpoint_offload,
                               .release = {CreditPool::checkpoint_stash}});
        if (drives_) {
          forward.ops.back().reads.erase(forward.ops.back().reads.begin() + 1);  // the buffer is the store's to free
        }
      }
      forward.ops.insert(forward.ops.begin(), std::make_move_iterator(away.begin()),
                         std::make_move_iterator(away.end()));
    }

    void bring(std::vector<Op> home, TensorId back) {
      Body& backward = block_.body(Phase::backward);
      Op* last_reader = nullptr;
      for (Op& op : backward.ops) {
        if (reads(op, x_)) {
          replace_read(op, x_, back);
          last_reader = &op;
        }
      }
      ULYSIM_CHECK(last_reader != nullptr, "nothing in {} reads its checkpoint", block_.name);
      last_reader->release.insert(CreditPool::checkpoint_fetch);
      backward.ops.insert(backward.ops.begin(), std::make_move_iterator(home.begin()),
                          std::make_move_iterator(home.end()));
    }

    [[nodiscard]] Op& first_kernel(Body& body) const {
      const auto first = std::find_if(body.ops.begin(), body.ops.end(), [](const Op& op) {
        return op.stream == Stream::compute && op.acquire == CreditPool::none;
      });
      ULYSIM_CHECK(first != body.ops.end(), "{} has no kernel that could wait", block_.name);
      return *first;
    }

    [[nodiscard]] TensorId output() const {
      const auto found = std::find_if(block_.tensors.begin(), block_.tensors.end(),
                                      [](const Tensor& tensor) { return tensor.port == Port::output; });
      ULYSIM_CHECK(found != block_.tensors.end(), "{} hands nothing on", block_.name);
      return TensorId(static_cast<std::size_t>(found - block_.tensors.begin()));
    }

    BlockTemplate& block_;
    TensorId x_;
    bool drives_;
    bool blocking_;
    bool pinned_;
  };
};

}  // namespace

const Strategy& checkpoint_offload_strategy() {
  static const CheckpointOffload strategy;
  return strategy;
}

}  // namespace ulysim::strategies

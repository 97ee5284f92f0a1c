#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/check.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/zero_parts.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

class ParameterPass {
 public:
  ParameterPass(const PlanContext& context, const OpGraph& graph, BlockTemplate& block)
      : mesh_(graph.mesh),
        block_(block),
        framework_(*context.framework),
        hidden_(context.model->hidden),
        // Modules of no unit of their own are one around all others, which is never cut after forward (PyTorch
        // fsdp/_fully_shard/_fsdp_state.py _lazy_init).
        root_(context.plan->zero == 3 && block.kind != BlockKind::layer &&
              context.framework->root_unit_stays_gathered.value != 0),
        // Gathered in forward, there until backward has done with it.
        keeps_(context.plan->zero < 3 || root_ ||
               (block.kind == BlockKind::head && context.framework->last_unit_stays_gathered.value != 0)),
        // A pipeline that reduces gradients behind the last micro-batch only cuts nothing again until then (PyTorch
        // distributed/pipelining/stage.py backward_maybe_with_nosync: set_reshard_after_backward(False)).
        once_(context.plan->zero == 1 && context.plan->mesh.size(MeshAxis::pipeline) > 1),
        offloads_(context.plan->parameter_offload != Offload::none),
        drives_(context.plan->parameter_offload == Offload::nvme),
        counted_with_states_(context.plan->optimizer_offload != Offload::none &&
                             context.framework->host_weight_bytes.value == 0.0) {}

  void run() {
    cut();
    for (Body& body : block_.bodies) {
      gather(body);
    }
  }

 private:
  /// Position in kUnits, for recompute.
  using Unit = std::pair<int, bool>;
  static constexpr std::array kUnits{"", "_mlp", "_experts"};

  /// Tensors under the persistence threshold are never cut, nor do they leave the GPU.
  void cut() {
    for (std::size_t i = 0; i < block_.tensors.size(); ++i) {
      Tensor& tensor = block_.tensors[i];
      const AxisSet axes = sharing_of(mesh_, tensor).shard;
      if (!tensor.parameter || (axes.empty() && !offloads_) ||
          global_elements(tensor) <= framework_.persistence(hidden_)) {
        continue;
      }
      whole_.emplace(i, tensor);
      shard(tensor, axes);
      block_elements_ += global_elements(tensor) / (is_placed_by_expert(tensor) ? mesh_.expert : 1);
      if (offloads_) {
        tensor.space = drives_ ? Space::nvme : Space::host;
        tensor.shared = tensor.shared || (counted_with_states_ && !tensor.frozen);
      }
    }
  }

  /// What is gathered together: the weights of the MLP; of the experts; the others; or all in one, but experts that
  /// other ranks share.
  [[nodiscard]] int unit_of(const Op& op, TensorId id) const {
    if (framework_.gather_unit.value == spec::GatherUnit::layer) {
      return is_placed_by_expert(block_.tensor(id)) ? 2 : 0;
    }
    return op.region == Region::mlp ? 1 : op.region == Region::experts ? 2 : 0;
  }

  /// One gather for each unit before its first reader. Backward reuses what recompute gathered, unless the block
  /// exceeds the reuse distance.
  void gather(Body& body) {
    const bool twice = block_elements_ > framework_.reuse_distance_elements.value;
    std::map<Unit, std::vector<std::size_t>> readers;
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      Op& op = body.ops[i];
      for (const TensorId id : std::vector<TensorId>(op.reads)) {
        if (whole_.count(id.index()) == 0) {
          continue;
        }
        if (const auto kept = kept_.find(id.index()); kept != kept_.end()) {
          replace_read(op, id, kept->second);
          continue;
        }
        std::vector<std::size_t>& unit = readers[{unit_of(op, id), twice && op.recomputed && op.loop < 0}];
        if (unit.empty() || unit.back() != i) {
          unit.push_back(i);
        }
      }
    }
    std::map<std::size_t, std::vector<Op>> before;
    for (const auto& [unit, ops] : readers) {
      std::vector<Op> fetch = fetch_unit(
          body, ops, unit,
          fmt::format("gather{}{}", kUnits.at(static_cast<std::size_t>(unit.first)), unit.second ? "_again" : ""));
      if (!once_) {
        fetch.front().acquire = CreditPool::parameters;
        CreditSet& returned = body.ops[ops.back()].release;
        ULYSIM_CHECK(!returned.contains(CreditPool::parameters), "{} ends two units", body.ops[ops.back()].name);
        returned.insert(CreditPool::parameters);
      }
      std::size_t place = ops.front();
      while (place > 0 && body.ops[place].loop >= 0 && !body.ops[place].part &&
             body.ops[place - 1].loop == body.ops[place].loop) {
        --place;
      }
      before[place].insert(before[place].end(), fetch.begin(), fetch.end());
    }
    std::vector<Op> out;
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const auto gathers = before.find(i);
      if (gathers != before.end()) {
        out.insert(out.end(), gathers->second.begin(), gathers->second.end());
      }
      out.push_back(std::move(body.ops[i]));
    }
    body.ops = std::move(out);
  }

  /// A unit on its way to its readers: from the drives, out of host memory, into the type that they read, from all
  /// ranks; what does not apply is left out.
  std::vector<Op> fetch_unit(Body& body, const std::vector<std::size_t>& ops, Unit unit, const std::string& name) {
    // Drives are read into pinned buffers (DeepSpeed runtime/swap_tensor/partitioned_param_swapper.py).
    Op load{
        .name = "load_" + name, .work = CopyWork{}, .stream = Stream::nvme_read, .purpose = Purpose::parameter_offload};
    Op copy{.name = "fetch_" + name,
            .work = CopyWork{},
            .stream = Stream::host_to_device,
            .purpose = Purpose::parameter_offload};
    Op cast{.name = "cast_" + name, .work = ElementwiseWork{.launches = 1}, .stream = Stream::zero_gather};
    Op collect{.name = name,
               .work = CollectiveWork{.kind = CollectiveKind::all_gather},
               .stream = Stream::zero_gather,
               .purpose = Purpose::parameters};
    std::map<std::size_t, TensorId> gathered;
    std::int64_t bytes = 0;
    for (const std::size_t i : ops) {
      for (const TensorId id : std::vector<TensorId>(body.ops[i].reads)) {
        const auto whole = whole_.find(id.index());
        if (whole == whole_.end() || unit_of(body.ops[i], id) != unit.first) {
          continue;
        }
        if (gathered.count(id.index()) == 0) {
          const std::string suffix = fmt::format("{}_{}", name, ++gathers_);
          const TensorId part = cast_shard(copied(loaded(id, suffix, load), suffix, copy), suffix, cast);
          gathered[id.index()] = collected(part, whole->second, suffix, collect, bytes);
          if (keeps_) {
            kept_[id.index()] = gathered[id.index()];
          }
        }
        replace_read(body.ops[i], id, gathered[id.index()]);
      }
    }
    std::vector<Op> fetch;
    for (Op* op : {&load, &copy, &cast, &collect}) {
      if (!op->reads.empty()) {
        op->when = once_ ? When::first_micro_batch : When::every_micro_batch;
        fetch.push_back(std::move(*op));
      }
    }
    if (bytes > 0) {
      add_copies(fetch.back(), bytes, name);
      if (framework_.sharding_copies_compute.value != 0) {
        fetch.push_back(copy_out(fetch.back()));
      }
    }
    return fetch;
  }

  /// Out of the flat buffer, each element read and written, by the stream that computes (PyTorch
  /// fsdp/_fully_shard/_fsdp_collectives.py foreach_all_gather_copy_out).
  Op copy_out(const Op& gather) const {
    ElementwiseWork work{.launches = 1};
    for (const TensorId id : gather.writes) {
      work.traffic.push_back({id, 2.0 * static_cast<double>(block_.tensor(id).element_bytes)});
    }
    return {.name = "copy_out_" + gather.name, .work = std::move(work), .reads = gather.writes, .when = gather.when};
  }

  TensorId loaded(TensorId id, const std::string& suffix, Op& load) {
    if (!drives_) {
      return id;
    }
    Tensor buffer = like(block_.tensor(id), fmt::format("{}_loaded_{}", block_.tensor(id).name, suffix));
    buffer.space = Space::host;
    buffer.kind = MemoryKind::gathered_parameters;
    buffer.pinned = true;
    load.reads.push_back(id);
    load.writes.push_back(block_.add(std::move(buffer)));
    return load.writes.back();
  }

  TensorId copied(TensorId id, const std::string& suffix, Op& copy) {
    if (!offloads_) {
      return id;
    }
    Tensor here = like(block_.tensor(id), fmt::format("{}_fetched_{}", block_.tensor(id).name, suffix));
    here.space = Space::gpu;
    here.kind = MemoryKind::gathered_parameters;
    copy.reads.push_back(id);
    copy.writes.push_back(block_.add(std::move(here)));
    return copy.writes.back();
  }

  /// A shard that is its own master travels in the type of the work (FSDP2 casts before the gather), or in the few bits
  /// that its readers take. What is held in blocks of few bits travels as it is.
  TensorId cast_shard(TensorId id, const std::string& suffix, Op& cast) {
    const auto of_the_work = static_cast<std::int64_t>(framework_.gathered_weight_bytes.value);
    const std::int64_t wire = block_.tensor(id).gathered_bytes.value_or(of_the_work);
    const std::int64_t held = block_.tensor(id).element_bytes;
    if (held <= wire || block_.tensor(id).block_elements != 1) {
      return id;
    }
    Tensor narrow = like(block_.tensor(id), fmt::format("{}_cast_{}", block_.tensor(id).name, suffix));
    narrow.element_bytes = wire;
    narrow.kind = MemoryKind::gathered_parameters;
    cast.reads.push_back(id);
    cast.writes.push_back(block_.add(std::move(narrow)));
    std::get<ElementwiseWork>(cast.work).traffic.push_back({id, static_cast<double>(held + wire)});
    return cast.writes.back();
  }

  TensorId collected(TensorId part, const Tensor& whole, const std::string& suffix, Op& collect, std::int64_t& bytes) {
    const AxisSet axes = sharing_of(mesh_, whole).shard;
    if (axes.empty()) {
      return part;
    }
    Tensor full = like(whole, fmt::format("{}_{}", whole.name, suffix));
    full.element_bytes = block_.tensor(part).element_bytes;
    full.kind = MemoryKind::gathered_parameters;
    full.persistent = once_ || root_;
    std::get<CollectiveWork>(collect.work).axes = axes;
    bytes += local_bytes(full, mesh_).value();
    collect.reads.push_back(part);
    collect.writes.push_back(block_.add(std::move(full)));
    return collect.writes.back();
  }

  /// The flat receive buffer stays beside the tensors that are copied out of it while a unit is gathered.
  void add_copies(Op& gather, std::int64_t bytes, const std::string& name) {
    const double extra = framework_.gather_copies.value - 1.0;
    if (extra <= 0) {
      return;
    }
    const auto size = static_cast<std::int64_t>(extra * static_cast<double>(bytes));
    gather.scratch.push_back(block_.add({.name = name + fmt::format("_buffer_{}", gathers_),
                                         .shape = {{.dim = Dim::elements, .size = size}},
                                         .element_bytes = 1,
                                         .kind = MemoryKind::communication_buffers}));
  }

  const Mesh& mesh_;
  BlockTemplate& block_;
  const spec::Framework& framework_;
  std::int64_t hidden_;
  bool root_;  ///< of the unit around all others
  bool keeps_;
  bool once_;  ///< gathered in the first micro-batch, kept for all of them
  bool offloads_;
  bool drives_;
  bool counted_with_states_;
  std::map<std::size_t, Tensor> whole_;
  std::map<std::size_t, TensorId> kept_;
  std::int64_t block_elements_{};
  int gathers_{};
};

}  // namespace

bool cuts_parameters(const PlanContext& context) {
  return context.plan->zero >= 3 || (context.plan->zero >= 1 && context.framework->parameter_is_master());
}

void shard_parameters(const PlanContext& context, const OpGraph& graph, BlockTemplate& block) {
  ParameterPass(context, graph, block).run();
}

void gather_updated_in_forward(const OpGraph& graph, BlockTemplate& block) {
  std::map<std::uint16_t, Op> gathers;
  for (std::size_t i = 0, count = block.tensors.size(); i < count; ++i) {
    const AxisSet axes = sharing_of(graph.mesh, block.tensors[i]).shard;
    if (!block.tensors[i].parameter || block.tensors[i].frozen || block.tensors[i].shared || axes.empty()) {
      continue;
    }
    Tensor part = like(block.tensors[i], block.tensors[i].name + "_updated");
    part.persistent = part.shared = true;  // within the weight itself
    shard(part, axes);
    Op& gather =
        gathers
            .try_emplace(axes.bits(), Op{.name = "gather_updated",
                                         .work = CollectiveWork{.kind = CollectiveKind::all_gather, .axes = axes},
                                         .stream = Stream::zero_gather,
                                         .purpose = Purpose::parameters,
                                         .when = When::first_micro_batch})
            .first->second;
    gather.reads.push_back(block.add(std::move(part)));
    gather.writes.emplace_back(i);
  }
  std::vector<Op>& ops = block.body(Phase::forward).ops;
  for (auto& [axes, gather] : gathers) {
    ops.insert(ops.begin(), std::move(gather));
  }
}

}  // namespace ulysim::strategies

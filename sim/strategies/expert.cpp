#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Sends tokens to the ranks of their experts and back, around what the experts compute (GShard, arXiv 2006.16668
/// §3.2; Megatron-LM moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher).
class BlockPass {
 public:
  BlockPass(OpGraph& graph, BlockTemplate& block, double imbalance)
      : mesh_(graph.mesh), block_(block), imbalance_(imbalance) {}

  void run() {
    for (Tensor& tensor : block_.tensors) {
      place(tensor);
    }
    for (Body& body : block_.bodies) {
      out_.clear();
      for (Op& op : body.ops) {
        permutes(op) ? exchange_around(op) : out_.push_back(op);
      }
      body.ops = std::move(out_);
    }
  }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  /// Where the experts are: each rank of an expert group has its experts, and of those the slots of the tokens that its
  /// group holds. Their gradients are summed over the groups.
  void place(Tensor& tensor) const {
    Extent* experts = tensor.find(Dim::experts);
    if (experts == nullptr) {
      return;
    }
    experts->split.insert(experts->split.begin(), MeshAxis::expert);
    if (Extent* slots = tensor.find(Dim::slots)) {
      std::erase_if(slots->split, [](MeshAxis axis) { return kSampleAxes.contains(axis); });
      slots->split.insert(slots->split.begin(), MeshAxis::expert_data);
      slots->busiest = imbalance_;
    } else if (tensor.kind == MemoryKind::gradients) {
      for (const MeshAxis axis : kAxes) {
        if (kSampleAxes.contains(axis)) {
          tensor.partial.erase(axis);
        }
      }
      tensor.partial = tensor.partial | mesh_.without_trivial({MeshAxis::expert_data});
    }
  }

  /// Between the tokens of a rank and the slots of experts.
  bool permutes(const Op& op) {
    const auto holds = [&](Dim dim) {
      const auto has = [&](TensorId id) { return at(id).find(dim) != nullptr; };
      return std::any_of(op.reads.begin(), op.reads.end(), has) || std::any_of(op.writes.begin(), op.writes.end(), has);
    };
    return std::holds_alternative<ElementwiseWork>(op.work) && holds(Dim::tokens) && holds(Dim::slots);
  }

  void exchange_around(Op op) {
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      if (at(id).find(Dim::slots) != nullptr) {
        replace_read(op, id, brought_home(id, op));
      }
    }
    std::vector<TensorId> sent;
    for (const TensorId id : std::vector<TensorId>(op.writes)) {
      if (at(id).find(Dim::slots) != nullptr) {
        replace_write(op, id, home_of(id));
        sent.push_back(id);
      }
    }
    out_.push_back(op);
    for (const TensorId id : sent) {
      send_out(id, op);
    }
  }

  /// The same slots where their tokens are: all experts' slots of the tokens of this rank.
  TensorId home_of(TensorId id) {
    Tensor tensor = like(at(id), at(id).name + "_home");
    std::erase(tensor.find(Dim::experts)->split, MeshAxis::expert);
    Extent& slots = *tensor.find(Dim::slots);
    slots.split.insert(slots.split.begin() + 1, MeshAxis::expert);
    const TensorId home = block_.add(std::move(tensor));
    home_[id.index()] = home;
    return home;
  }

  /// Made once and kept from forward to backward.
  TensorId brought_home(TensorId id, const Op& served) {
    const auto known = home_.find(id.index());
    if (known != home_.end()) {
      return known->second;
    }
    const TensorId packed = sorts() ? sorted("sort_back_" + at(id).name, id, buffer(id, "_send"), served) : id;
    const TensorId home = home_of(id);
    all_to_all("combine_" + at(id).name, packed, home, {.from = Dim::experts, .to = Dim::slots}, served);
    return home;
  }

  void send_out(TensorId id, const Op& served) {
    const TensorId arrived = sorts() ? buffer(id, "_received") : id;
    all_to_all("dispatch_" + at(id).name, home_[id.index()], arrived, {.from = Dim::slots, .to = Dim::experts}, served);
    if (sorts()) {
      (void)sorted("sort_" + at(id).name, arrived, id, served);
    }
  }

  /// What arrives is ordered by sender; with more than one expert to a rank it is copied into the order of experts.
  [[nodiscard]] bool sorts() const {
    for (const Tensor& tensor : block_.tensors) {
      if (const Extent* experts = tensor.find(Dim::experts)) {
        return experts->size > mesh_.expert;
      }
    }
    return false;
  }

  TensorId sorted(const std::string& name, TensorId from, TensorId to, const Op& served) {
    constexpr double kCopy = 4.0;  // bf16 read and written
    out_.push_back({.name = name,
                    .work = ElementwiseWork{.traffic = {{from, kCopy}}, .launches = 1},
                    .reads = {from},
                    .writes = {to},
                    .region = served.region});
    return to;
  }

  struct Move {
    Dim from{};
    Dim to{};
  };
  void all_to_all(const std::string& name, TensorId from, TensorId to, Move move, const Op& served) {
    out_.push_back(
        {.name = name,
         .work =
             CollectiveWork{
                 .kind = CollectiveKind::all_to_all, .axes = {MeshAxis::expert}, .from = move.from, .to = move.to},
         .reads = {from},
         .writes = {to},
         .stream = Stream::expert_comm,
         .purpose = Purpose::expert,
         .region = served.region});
  }

  TensorId buffer(TensorId id, const char* suffix) {
    Tensor tensor = like(at(id), at(id).name + suffix);
    tensor.kind = MemoryKind::communication_buffers;
    return block_.add(std::move(tensor));
  }

  const Mesh& mesh_;
  BlockTemplate& block_;
  double imbalance_;
  std::vector<Op> out_;
  std::map<std::size_t, TensorId> home_;
};

/// Routed experts spread over ranks that hold samples of their own, data × sequence: no GPUs beside those. Comes after
/// the passes that split samples, and tells their cut of the experts' slots by the expert axes instead.
class ExpertParallel final : public Strategy {
 public:
  std::string name() const override { return "expert"; }
  std::string summary() const override { return "experts spread over data × sequence ranks, tokens sent to them"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const Mesh& mesh = context.plan->mesh;
    const std::int64_t degree = mesh.expert;
    if (degree == 1) {
      return {};
    }
    if (!context.model->moe) {
      return {{fmt::format("expert {}: {} has no experts to spread", degree, context.model->name),
               {{"expert", static_cast<double>(degree)}},
               "expert 1"}};
    }
    const std::int64_t experts = context.model->moe->experts;
    const std::int64_t holders = mesh.size(kSampleAxes);
    std::int64_t best = std::min(degree, holders);
    while (experts % best != 0 || holders % best != 0) {
      --best;
    }
    const std::string instead = fmt::format("expert {}", best);
    std::vector<Infeasible> reasons;
    if (experts % degree != 0) {
      reasons.push_back({fmt::format("{} experts do not divide by expert {}", experts, degree),
                         {{"experts", static_cast<double>(experts)}, {"expert", static_cast<double>(degree)}},
                         instead});
    }
    if (holders % degree != 0) {
      reasons.push_back(
          {fmt::format("expert {} does not divide the {} ranks of data × sequence (ulysses {} · ring {} · data {})",
                       degree, holders, mesh.size(MeshAxis::ulysses), mesh.size(MeshAxis::ring),
                       mesh.size(MeshAxis::data)),
           {{"ranks", static_cast<double>(holders)}, {"expert", static_cast<double>(degree)}},
           instead});
    }
    if (const double imbalance = context.plan->expert_imbalance; imbalance > static_cast<double>(degree)) {
      reasons.push_back(
          {fmt::format("expert_imbalance {}: one of {} ranks cannot get more than all tokens, {} times the "
                       "average",
                       imbalance, degree, degree),
           {{"expert_imbalance", imbalance}, {"expert", static_cast<double>(degree)}},
           fmt::format("expert_imbalance {} at most", degree)});
    }
    return reasons;
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->mesh.expert == 1) {
      return;
    }
    for (BlockTemplate& block : graph.templates) {
      BlockPass(graph, block, context.plan->expert_imbalance).run();
    }
  }
};

}  // namespace

const Strategy& expert_strategy() {
  static const ExpertParallel strategy;
  return strategy;
}

}  // namespace ulysim::strategies

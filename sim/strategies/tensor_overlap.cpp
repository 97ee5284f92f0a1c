#include "sim/strategies/tensor_overlap.h"

#include "sim/strategies/rewrite.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Steps of equal work in a row are one op with repeats: the first step of what comes first, then all others of it
/// beside all but the last of what follows, then that last one. It takes as long as the steps one by one.
class Pipelining {
 public:
  Pipelining(BlockTemplate& layer, std::int64_t steps) : layer_(layer), steps_(steps) {}

  void run() {
    Body& body = layer_.body(Phase::forward);
    loop_ = static_cast<std::int32_t>(body.loops.size());
    for (std::size_t i = 0; i < body.ops.size();) {
      const std::size_t products = products_behind(body, i);
      if (products > 0) {
        gather(body, i, products);
        i += 1 + products;
      } else if (is_drained(body, i)) {
        scatter(body.ops[i], body.ops[i + 1]);
        i += 2;
      } else {
        out_.push_back(body.ops[i++]);
      }
    }
    body.ops = std::move(out_);
    if (cut_) {
      body.loops.push_back({.name = "tensor_steps", .trips = steps_});
    }
  }

 private:
  [[nodiscard]] bool is(const Op& op, CollectiveKind kind) const {
    const auto* work = std::get_if<CollectiveWork>(&op.work);
    return work != nullptr && work->kind == kind && work->axes == AxisSet{MeshAxis::tensor} &&
           layer_.tensor(op.reads[0]).find(Dim::tokens) != nullptr;
  }
  static bool is_product(const Op& op) { return std::holds_alternative<GemmWork>(op.work); }

  /// Products right behind the gather at `i` that read what it brings; 0 where there is no such gather.
  [[nodiscard]] std::size_t products_behind(const Body& body, std::size_t i) const {
    std::size_t count = 0;
    if (is(body.ops[i], CollectiveKind::all_gather)) {
      while (i + 1 + count < body.ops.size() && is_product(body.ops[i + 1 + count]) &&
             reads(body.ops[i + 1 + count], body.ops[i].writes[0])) {
        ++count;
      }
    }
    return count;
  }
  /// Whether the product at `i` is scattered right behind it.
  [[nodiscard]] bool is_drained(const Body& body, std::size_t i) const {
    return i + 1 < body.ops.size() && is_product(body.ops[i]) && is(body.ops[i + 1], CollectiveKind::reduce_scatter) &&
           body.ops[i + 1].reads == body.ops[i].writes;
  }

  void add(Op op, const char* suffix, std::int64_t part, std::int64_t repeats) {
    op.name += suffix;
    op.loop = loop_;
    op.part = part;
    op.repeats = repeats;
    out_.push_back(std::move(op));
    cut_ = true;
  }
  TensorId step_of(TensorId whole) {
    Tensor tensor = like(layer_.tensor(whole), layer_.tensor(whole).name + "_step");
    tensor.loop = loop_;
    return layer_.add(std::move(tensor));
  }

  void gather(const Body& body, std::size_t at, std::size_t products) {
    const Op& op = body.ops[at];
    const TensorId step = step_of(op.writes[0]);
    Op first = op;
    replace_write(first, op.writes[0], step);
    add(first, "_first", 0, 1);
    add(op, "_rest", 1, steps_ - 1);
    for (std::size_t i = at + 1; i <= at + products; ++i) {
      Op ahead = body.ops[i];
      replace_read(ahead, op.writes[0], step);
      add(ahead, "_beside", 0, steps_ - 1);
    }
    for (std::size_t i = at + 1; i <= at + products; ++i) {
      add(body.ops[i], "_last", steps_ - 1, 1);
    }
  }

  void scatter(const Op& product, const Op& op) {
    const TensorId step = step_of(product.writes[0]);
    Op first = product;
    replace_write(first, product.writes[0], step);
    Op beside = op;
    replace_read(beside, product.writes[0], step);
    add(first, "_first", 0, 1);
    add(beside, "_beside", 0, steps_ - 1);
    add(product, "_rest", 1, steps_ - 1);
    add(op, "_last", steps_ - 1, 1);
  }

  BlockTemplate& layer_;
  std::int64_t steps_;
  std::int32_t loop_{};
  bool cut_{};
  std::vector<Op> out_;
};

}  // namespace

void overlap_forward(BlockTemplate& layer, std::int64_t degree) {
  Pipelining(layer, degree).run();
}

}  // namespace ulysim::strategies

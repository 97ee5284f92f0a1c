#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/training_step.h"

namespace ulysim::workload {

/// What a linear map treats alike: its rows, and dimensions with a weight of their own (experts).
struct Rows {
  std::vector<Dim> dims{Dim::batch, Dim::tokens};
  std::vector<Dim> groups{};
};

/// Writes one block template. Tensors are named after what the field calls them; `d_x` is the gradient of x.
class BlockBuilder {
 public:
  BlockBuilder(const Transformer& model, const StepOptions& options, BlockTemplate& block)
      : model_(model), options_(options), block_(block) {}

  TensorId activation(const std::string& name, std::vector<Extent> inner, std::int64_t bytes = 2) {
    std::vector<Extent> shape{{.dim = Dim::batch, .size = options_.batch},
                              {.dim = Dim::tokens, .size = options_.sequence_length}};
    shape.insert(shape.end(), inner.begin(), inner.end());
    return block_.add({.name = name, .shape = std::move(shape), .element_bytes = bytes});
  }
  TensorId hidden(const std::string& name, Port port = Port::none) {
    const TensorId id = activation(name, {{.dim = Dim::hidden, .size = model_.hidden}});
    block_.tensor(id).port = port;
    return id;
  }
  /// A weight, its gradient of this micro-batch, and the accumulated gradient.
  struct Weight {
    TensorId value{};
    TensorId grad{};
    TensorId total{};
  };
  Weight weight(const std::string& name, const std::vector<Extent>& shape) {
    Weight w;
    w.value = block_.add({.name = name,
                          .shape = shape,
                          .element_bytes = options_.costs.weight_bytes,
                          .kind = MemoryKind::weights,
                          .persistent = true,
                          .parameter = true});
    w.grad = block_.add({.name = "d_" + name, .shape = shape, .kind = MemoryKind::gradients});
    w.total = block_.add({.name = "sum_d_" + name,
                          .shape = shape,
                          .element_bytes = options_.costs.gradient_bytes,
                          .kind = MemoryKind::gradients,
                          .persistent = true});
    return w;
  }

  void in(Phase phase, Region region = Region::other) {
    phase_ = phase;
    region_ = region;
  }
  Op& add(Op op) {
    op.region = region_;
    Body& body = block_.body(phase_);
    body.ops.push_back(std::move(op));
    return body.ops.back();
  }
  void gemm(const std::string& name, TensorId a, TensorId b, TensorId c, GemmWork work) {
    add({.name = name, .work = std::move(work), .reads = {a, b}, .writes = {c}, .purpose = Purpose::gemm});
  }
  void elementwise(const std::string& name, std::vector<TensorId> reads, std::vector<TensorId> writes,
                   std::vector<Traffic> traffic, std::int64_t launches) {
    const std::int64_t factor = phase_ == Phase::backward ? options_.costs.backward_launches : 1;
    add({.name = name,
         .work = ElementwiseWork{.traffic = std::move(traffic), .launches = launches * factor},
         .reads = std::move(reads),
         .writes = std::move(writes)});
  }
  /// The host is busy with something that no kernel shows.
  void host_time(const std::string& name, Duration time) {
    if (time > Duration{}) {
      add({.name = name,
           .work = HostWork{.fixed = time},
           .stream = Stream::host_work,
           .purpose = Purpose::host,
           .host_waits = true});
    }
  }
  /// y = x·W; `in_dims` are contracted forward.
  struct Linear {
    std::string name{};
    TensorId x{};
    Weight w{};
    TensorId d_y{};
    TensorId d_x{};
    std::vector<Dim> in_dims{};
    std::vector<Dim> out_dims{};
  };
  void linear(const std::string& name, const Linear& l, TensorId y, const Rows& rows = {}) {
    gemm(name, l.x, l.w.value, y, {.m = rows.dims, .n = l.out_dims, .k = l.in_dims, .groups = rows.groups});
  }
  /// The gradients of the inputs first: what comes next, communication too, waits for those and not for the weights'.
  void linear_backward(const std::vector<Linear>& maps, const Rows& rows = {}) {
    for (const Linear& l : maps) {
      gemm(l.name + "_dgrad", l.d_y, l.w.value, l.d_x,
           {.m = rows.dims, .n = l.in_dims, .k = l.out_dims, .groups = rows.groups});
    }
    for (const Linear& l : maps) {
      gemm(l.name + "_wgrad", l.x, l.d_y, l.w.grad,
           {.m = l.in_dims, .n = l.out_dims, .k = rows.dims, .groups = rows.groups});
    }
  }
  void accumulate(const std::string& name, const std::vector<Weight>& weights) {
    Op op{.name = name, .work = ElementwiseWork{.launches = static_cast<std::int64_t>(weights.size())}};
    auto& traffic = std::get<ElementwiseWork>(op.work).traffic;
    const double bytes = 2.0 + 2.0 * static_cast<double>(options_.costs.gradient_bytes);
    for (const Weight& w : weights) {
      op.reads.push_back(w.grad);
      op.writes.push_back(w.total);
      traffic.push_back({.tensor = w.grad, .bytes_per_element = bytes});
    }
    add(std::move(op));
  }

  const Transformer& model_;
  const StepOptions& options_;
  BlockTemplate& block_;

 private:
  Phase phase_{Phase::forward};
  Region region_{Region::other};
};

}  // namespace ulysim::workload

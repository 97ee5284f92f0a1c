#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
  /// A weight, and of a trained one its gradient of this micro-batch and the accumulated one.
  struct Weight {
    TensorId value{};
    std::optional<TensorId> grad{};
    std::optional<TensorId> total{};
  };
  /// A weight that adapters leave as it is (norms, the router, embedding and head).
  Weight weight(const std::string& name, const std::vector<Extent>& shape) {
    return declare(name, shape, options_.adapters.has_value());
  }
  /// The weight of a linear map of a layer: what adapters stand beside, and what is held in few bits.
  Weight linear_weight(const std::string& name, const std::vector<Extent>& shape);

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
  /// The op added last to the phase at hand.
  [[nodiscard]] Op& last() { return block_.body(phase_).ops.back(); }
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
  /// The op added last works on so many bytes for each element of `id`, and keeps none of them.
  void scratch_like(TensorId id, std::int64_t bytes) {
    if (bytes > 0) {
      Tensor tensor = block_.tensor(id);
      tensor.name = last().name + "_scratch";
      tensor.port = Port::none;
      tensor.element_bytes = bytes;
      last().scratch.push_back(block_.add(std::move(tensor)));
    }
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
    std::string target{};  ///< as adapters name it
  };
  /// In the GEMM precision of the step, beside its adapter where it has one.
  void linear(const std::string& name, const Linear& l, TensorId y, const Rows& rows = {});
  /// The gradients of the inputs first: what comes next, communication too, waits for those and not for the weights'.
  /// Returns what the adapter of each map adds to its d_x, on a tensor of its own: whatever reads d_x reads that too.
  [[nodiscard]] std::vector<std::optional<TensorId>> linear_backward(const std::vector<Linear>& maps,
                                                                     const Rows& rows = {});
  /// `ids` and those of `more` that are there.
  [[nodiscard]] static std::vector<TensorId> joined(std::vector<TensorId> ids,
                                                    const std::vector<std::optional<TensorId>>& more);
  /// `traffic`, and of adding up those of `ids` that adapters contribute.
  [[nodiscard]] std::vector<Traffic> fan_in(std::vector<Traffic> traffic, const std::vector<TensorId>& ids) const;
  /// The same of maps that stay in bf16 and have no adapter (head, router).
  void plain_linear_backward(const Linear& map);
  /// Adds up the gradients of those of `weights` that are trained, and of their adapters.
  void accumulate(const std::string& name, const std::vector<Weight>& weights);
  /// `ids` with the gradient of `w`, if it is trained.
  [[nodiscard]] static std::vector<TensorId> with_gradient(std::vector<TensorId> ids, const Weight& w) {
    if (w.grad) {
      ids.push_back(*w.grad);
    }
    return ids;
  }
  [[nodiscard]] const Transformer& model() const { return model_; }
  [[nodiscard]] const StepOptions& options() const { return options_; }
  [[nodiscard]] BlockTemplate& block() { return block_; }

 private:
  struct Adapter {
    Weight a{}, b{};
    TensorId inner{};  ///< x·A, kept for backward
    TensorId d_y{};    ///< scaled
    TensorId d_inner{};
    TensorId d_x{};  ///< its part of the input's gradient
  };
  Weight declare(const std::string& name, const std::vector<Extent>& shape, bool frozen);
  [[nodiscard]] Adapter adapter(const std::string& name, const Linear& l, const Rows& rows);
  [[nodiscard]] TensorId adapter_input_gradient(const Linear& l, Adapter& adapter, const Rows& rows);
  using Operands = std::map<std::size_t, TensorId>;  ///< by what they are made of
  /// An activation, or a gradient of one, as a GEMM of this step takes it; made once, at `traffic` bytes per element.
  [[nodiscard]] TensorId operand(TensorId id, double traffic, Operands& known);
  /// The input of a product as that of its weight's gradient takes it: as it was made in forward, or made anew.
  [[nodiscard]] TensorId input_again(TensorId x);
  /// A weight as a GEMM takes it, made anew in each phase: out of few bits, into the GEMM precision.
  [[nodiscard]] TensorId weight_operand(const Weight& w);
  [[nodiscard]] TensorId made(const std::string& name, TensorId from, Tensor to, Traffic traffic);

  const Transformer& model_;
  const StepOptions& options_;
  BlockTemplate& block_;
  Phase phase_{Phase::forward};
  Region region_{Region::other};
  Operands operands_{};                                                  ///< of activations
  Operands operands_again_{};                                            ///< those made anew in backward
  std::map<std::pair<Phase, std::size_t>, TensorId> weight_operands_{};  ///< by phase
  std::map<std::size_t, Adapter> adapters_{};                            ///< by weight
};

}  // namespace ulysim::workload

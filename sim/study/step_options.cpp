#include "sim/study/step_options.h"

#include <algorithm>
#include <cmath>

#include "sim/strategies/optimizer_bytes.h"

namespace ulysim::study {

namespace {

std::int64_t whole(double value) {
  return std::lround(value);
}

/// Of a stack that pads, for each tensor rank; another's ranks take what is left over by themselves.
std::int64_t vocabulary_multiple(const spec::Framework& framework, const strategies::Plan& plan) {
  const std::int64_t multiple = framework.vocabulary_multiple.value;
  return multiple == 1 ? 1 : multiple * plan.mesh.size(workload::MeshAxis::tensor);
}

}  // namespace

workload::StepOptions step_options(const workload::Transformer& model, const scenario::PlanEntry& entry) {
  const strategies::Plan& plan = entry.plan;
  const spec::Framework& f = entry.framework;
  const bool gated = model.mlp_kind == workload::MlpKind::gated;
  constexpr double kBf16 = 2.0;
  const auto of_mlp = [&](const std::optional<spec::Sourced<double>>& tiled, const spec::Sourced<double>& whole) {
    return plan.tiled_mlp && tiled ? tiled->value : whole.value;
  };
  const strategies::OptimizerBytes optimizer = strategies::optimizer_bytes(f, plan);
  const strategies::OptimizerBytes matrices = strategies::matrix_bytes(f, plan);
  workload::ElementwiseCosts costs{
      .norm_forward = f.norm_forward.value,
      .norm_backward = f.norm_backward.value,
      .rope_forward = f.rope_forward.value,
      .rope_backward = f.rope_backward.value,
      .activation_forward = of_mlp(f.tiled_activation_forward, f.activation_forward),
      .activation_backward = of_mlp(f.tiled_activation_backward, f.activation_backward),
      .residual_forward = f.residual_forward.value,
      .residual_backward = f.residual_backward.value,
      .loss_forward = f.loss_forward.value,
      .loss_backward = f.loss_backward.value,
      .backward_launches = std::max<std::int64_t>(1, whole(f.backward_kernels.value)),
      .norm_launches = f.norm_kernels.value,
      .rope_launches = f.rope_kernels.value,
      .activation_launches = f.activation_kernels.value,
      .residual_launches = f.residual_kernels.value,
      // The profile counts forward and backward together.
      .loss_launches = std::max<std::int64_t>(
          1, whole(static_cast<double>(f.loss_kernels.value) / (1.0 + std::max(1.0, f.backward_kernels.value)))),
      .norm_saved = std::max<std::int64_t>(0, whole(f.norm_saved.value - (f.norm_saves_input.value != 0 ? kBf16 : 0))),
      .norm_keeps_input = f.norm_saves_input.value != 0,
      .norm_forward_scratch = whole(f.norm_forward_scratch.value),
      .norm_backward_scratch = whole(f.norm_backward_scratch.value),
      // The profile counts gate, up and their product as well, which are tensors of the graph.
      .activation_saved =
          gated ? std::max<std::int64_t>(0, whole(of_mlp(f.tiled_activation_saved, f.activation_saved) - 3 * kBf16))
                : 0,
      .experts_combine_scratch = whole(f.experts_combine_scratch.value),
      .activation_in_place = f.activation_backward_in_place.value != 0 && !(plan.tiled_mlp && f.tiled_activation_saved),
      .logits_kept = whole(f.logits_kept_bytes.value),
      .logits_forward_workspace =
          std::max<std::int64_t>(0, whole(f.logits_forward_bytes.value - f.logits_kept_bytes.value - kBf16)),
      .logits_backward_workspace =
          std::max<std::int64_t>(0, whole(f.logits_peak_bytes.value - f.logits_kept_bytes.value - kBf16)),
      .quantise_traffic = f.quantise_traffic.value,
      .quantise_weight_traffic = f.quantise_weight_traffic.value,
      .quantise_gradient_traffic = f.quantise_gradient_traffic.value_or(f.quantise_traffic).value,
      // Under tensor parallelism inputs are cast before they are gathered, and kept so (torchao
      // float8/float8_tensor_parallel.py).
      .requantise_traffic = plan.mesh.size(workload::MeshAxis::tensor) == 1 ? f.requantise_traffic.value : 0.0,
      .transpose_weight_traffic = f.transpose_weight_traffic.value,
      .quantise_launches = f.quantise_kernels.value,
      .adapter_traffic = f.adapter_traffic.value,
      .adapter_launches = f.adapter_kernels.value,
      .optimizer_traffic = optimizer.traffic,
      .optimizer_bytes = whole(optimizer.states),
      .optimizer_transient_bytes = whole(optimizer.transient),
      .weight_bytes = whole(optimizer.weight),
      .gradient_bytes = whole(optimizer.gradient),
  };
  if (f.split_logits_peak_bytes && plan.mesh.size(workload::MeshAxis::tensor) > 1) {
    costs.logits_backward_workspace =
        std::max<std::int64_t>(1, whole(f.split_logits_peak_bytes->value - f.logits_kept_bytes.value - kBf16));
  }
  if (plan.optimizer == strategies::Optimizer::muon) {
    costs.matrix_optimizer_bytes = whole(matrices.states);
    costs.matrix_optimizer_traffic = matrices.traffic;
  }
  return {.sequence_length = plan.sequence_length,
          .batch = plan.micro_batch * plan.mesh.size(workload::MeshAxis::data),
          .micro_batches = plan.accumulation,
          .attention = plan.attention,
          .mask = plan.mask,
          .sliding_window = plan.sliding_window,
          .block_sparse = plan.block_sparse,
          .documents = plan.documents,
          .gemm_precision = plan.gemm_precision,
          .quantised_gather = f.quantised_gather.value != 0 && plan.zero == 3,
          .adapters = plan.adapters,
          .costs = costs,
          .vocabulary_multiple = vocabulary_multiple(f, plan),
          .attention_synchronises = f.sync_per_attention.value > 0,
          .fixed_time_per_micro_step = f.fixed_time_per_micro_step.value,
          .fixed_time_per_step = f.fixed_time_per_step.value};
}

}  // namespace ulysim::study

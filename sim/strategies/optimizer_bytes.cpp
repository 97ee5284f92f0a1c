#include "sim/strategies/optimizer_bytes.h"

#include <fmt/format.h>

#include "sim/base/check.h"

namespace ulysim::strategies {

namespace {

const std::optional<spec::StateBytes>& variant_of(const spec::Framework& framework, OptimizerStates states) {
  return states == OptimizerStates::bf16 ? framework.bf16_states : framework.eight_bit_states;
}

const char* name_of(OptimizerStates states) {
  return states == OptimizerStates::bf16 ? "bf16" : "8bit";
}

constexpr double kMomentsOfAdam = 2.0;

/// What loss scaling adds to a step.
OptimizerBytes scaled(OptimizerBytes bytes, const spec::Framework& framework, const Plan& plan) {
  if (plan.dtype == Dtype::fp16) {
    ULYSIM_CHECK(framework.loss_scaling, "{} has no loss scaling", framework.name);
    bytes.traffic += framework.loss_scaling->traffic.value;
  }
  return bytes;
}

std::int64_t moments_of(Optimizer optimizer) {
  // SGD with momentum, Lion (arXiv 2302.06675): one. Muon keeps AdamW for what is no matrix of a layer.
  return optimizer == Optimizer::sgd || optimizer == Optimizer::lion ? 1 : 2;
}

}  // namespace

OptimizerBytes optimizer_bytes(const spec::Framework& f, OptimizerStates states, std::int64_t moments) {
  const double base_states = f.master_bytes.value + f.moments_bytes.value;
  const double share = static_cast<double>(moments) / kMomentsOfAdam;
  OptimizerBytes out{.weight = f.weight_bytes.value,
                     .gradient = f.gradient_bytes.value,
                     .states = f.master_bytes.value + share * f.moments_bytes.value,
                     .transient = f.optimizer_transient_bytes.value,
                     .host = f.host_bytes_per_parameter.value - (1.0 - share) * f.moments_bytes.value};
  if (states != OptimizerStates::fp32) {
    const std::optional<spec::StateBytes>& other = variant_of(f, states);
    ULYSIM_CHECK(other, "{} has no {} states", f.name, name_of(states));
    out.weight = other->weight_bytes.value;
    out.gradient = other->gradient_bytes.value;
    out.states = other->master_bytes.value + share * other->moments_bytes.value;
    out.host = other->host_bytes ? other->host_bytes->value - (1.0 - share) * other->moments_bytes.value : 0.0;
  }
  // States are read and written, gradients read. Where there is no master, the weight is it.
  const double master = f.master_bytes.value > 0 ? 0.0 : f.weight_bytes.value - out.weight;
  const double saved = 2.0 * (base_states - out.states + master) + f.gradient_bytes.value - out.gradient;
  out.traffic = f.optimizer_traffic.value - saved;
  out.host_traffic = f.host_adam_traffic.value - saved;
  return out;
}

OptimizerBytes optimizer_bytes(const spec::Framework& framework, const Plan& plan) {
  OptimizerBytes out = optimizer_bytes(framework, plan.optimizer_states, moments_of(plan.optimizer));
  if (plan.optimizer == Optimizer::adafactor) {
    ULYSIM_CHECK(framework.adafactor, "{} has no Adafactor", framework.name);
    out.states = framework.master_bytes.value + framework.adafactor->moments_bytes.value;
    out.traffic = framework.adafactor->traffic.value;
    out.transient = framework.adafactor->transient_bytes.value;
  }
  return scaled(out, framework, plan);
}

OptimizerBytes matrix_bytes(const spec::Framework& framework, const Plan& plan) {
  return plan.optimizer == Optimizer::muon
             ? scaled(optimizer_bytes(framework, plan.optimizer_states, 1), framework, plan)
             : optimizer_bytes(framework, plan);
}

std::vector<Infeasible> reasons_against(const spec::Framework& framework, const Plan& plan) {
  std::vector<Infeasible> reasons;
  if (plan.optimizer_states != OptimizerStates::fp32) {
    const std::string words = fmt::format("optimizer.states: {}", name_of(plan.optimizer_states));
    const std::optional<spec::StateBytes>& states = variant_of(framework, plan.optimizer_states);
    if (!states) {
      reasons.push_back(
          {fmt::format("{}: {} has no such states", words, framework.name), {}, "optimizer.states: fp32"});
    } else if (plan.optimizer_offload == Offload::none && states->offloaded_only.value != 0) {
      reasons.push_back({fmt::format("{}: {} has them with the optimizer on the host only", words, framework.name),
                         {},
                         "optimizer.offload: cpu"});
    } else if (plan.optimizer_offload != Offload::none && !states->host_bytes) {
      reasons.push_back(
          {fmt::format("{}: {} cannot offload them", words, framework.name), {}, "optimizer.offload: none"});
    } else if (plan.optimizer_offload == Offload::nvme) {
      reasons.push_back({fmt::format("{}: only fp32 states are swapped to NVMe", words), {}, "optimizer.offload: cpu"});
    }
  }
  if (plan.dtype == Dtype::fp16 && !framework.loss_scaling) {
    reasons.push_back({fmt::format("dtype: fp16: {} does not scale the loss", framework.name), {}, "dtype: bf16"});
  } else if (plan.dtype == Dtype::fp32) {
    // Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp mha_fwd; cuDNN frontend, scaled dot product attention.
    reasons.push_back(
        {"dtype: fp32: FlashAttention and cuDNN compute in fp16 and bf16 only, and no rate of another kernel is known",
         {},
         "dtype: bf16"});
  }
  if (plan.optimizer == Optimizer::adafactor) {
    if (!framework.adafactor) {
      reasons.push_back(
          {fmt::format("optimizer.name: adafactor: {} has none", framework.name), {}, "optimizer.name: adamw"});
    } else if (plan.optimizer_states != OptimizerStates::fp32) {
      reasons.push_back({"optimizer.name: adafactor keeps its moments in fp32", {}, "optimizer.states: fp32"});
    } else if (plan.optimizer_offload != Offload::none) {
      reasons.push_back({"optimizer.name: adafactor runs on the GPU", {}, "optimizer.offload: none"});
    }
  }
  if (plan.optimizer == Optimizer::muon) {
    if (plan.optimizer_offload != Offload::none) {
      reasons.push_back({"optimizer.name: muon: Newton-Schulz runs on the GPU, where the momentum must be",
                         {},
                         "optimizer.offload: none"});
    }
    if (plan.mesh.size(workload::MeshAxis::pipeline) > 1) {
      reasons.push_back({"optimizer.name: muon: not simulated over pipeline stages", {}, "optimizer.name: adamw"});
    }
  } else if (plan.optimizer_offload == Offload::nvme && moments_of(plan.optimizer) != 2) {
    reasons.push_back({"optimizer.offload: nvme swaps the states of Adam", {}, "optimizer.name: adamw"});
  }
  return reasons;
}

}  // namespace ulysim::strategies

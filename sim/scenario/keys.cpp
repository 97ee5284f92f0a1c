#include "sim/scenario/keys.h"

#include <algorithm>

namespace ulysim::scenario {

const std::vector<Key>& keys() {
  static const std::vector<Key> table{
      {"scenario", "scenario", {}, {}},
      {"scenario", "model", {}, {}},
      {"scenario", "cluster", {}, {}},
      {"scenario", "training", {}, {}},
      {"scenario", "plans", {}, {}},

      {"cluster", "node", {}, {}},
      {"cluster", "nodes", {}, {}},
      {"cluster", "gpus", {}, {}},
      {"cluster", "network", {}, {}},
      {"cluster", "price_per_gpu_hour", {}, {}},

      {"network", "topology", {}, {}},
      {"network", "oversubscription", {}, {}},
      {"network", "nic_bandwidth", {}, {}},
      {"network", "latency", {}, {}},

      {"training", "sequence_length", {}, {}},
      {"training", "pad_to_multiple", {}, {}},
      {"training", "micro_batch", {}, {}},
      {"training", "gradient_accumulation", {}, {}},
      {"training", "global_batch", {}, {}},
      {"training", "dtype", {"bf16", "fp16", "fp32"}, {}},
      {"training", "gemm_precision", {"bf16", "fp8", "mxfp8", "nvfp4"}, {}},
      {"training", "trainable", {"all"}, {}},
      {"training", "base_precision", {"bf16", "nf4"}, {"int8", "fp4"}},
      {"training", "attention", {}, {}},
      {"training", "recompute", {"none", "selective", "full", "full-keep-attention"}, {}},
      {"training", "checkpoint_offload", {"none", "cpu", "nvme"}, {}},
      {"training", "zero", {}, {}},
      {"training", "optimizer", {}, {}},
      {"training", "parameter_offload", {"none", "cpu", "nvme"}, {}},
      {"training", "tiled_mlp", {}, {}},
      {"training", "tiled_loss", {}, {}},
      {"training", "expert_imbalance", {}, {}},
      {"training", "framework", {}, {}},
      {"training", "total_tokens", {}, {}},

      {"attention", "implementation", {"flash-attention-2", "flash-attention-3", "cudnn", "sdpa"}, {}},
      {"attention", "mask", {"full", "causal"}, {}},

      {"trainable", "lora", {}, {}},

      {"lora", "rank", {}, {}},
      {"lora", "targets", {}, {}},

      {"mask", "sliding_window", {}, {}},
      {"mask", "block_sparse", {}, {}},

      {"block_sparse", "block", {}, {}},
      {"block_sparse", "local", {}, {}},
      {"block_sparse", "global", {}, {}},
      {"block_sparse", "stride", {}, {}},
      {"block_sparse", "density", {}, {}},
      {"block_sparse", "seed", {}, {}},
      {"block_sparse", "causal", {}, {}},

      {"sequence_length", "packed", {}, {}},
      {"sequence_length", "padded", {}, {}},
      {"sequence_length", "distribution", {}, {}},

      {"distribution", "kind", {"constant", "uniform", "lognormal"}, {}},
      {"distribution", "mean", {}, {}},
      {"distribution", "sigma", {}, {}},
      {"distribution", "min", {}, {}},
      {"distribution", "max", {}, {}},
      {"distribution", "seed", {}, {}},
      {"distribution", "pack_to", {}, {}},

      {"recompute", "layers", {}, {}},

      {"optimizer", "name", {"adamw", "adam", "sgd", "lion", "muon", "adafactor"}, {}},
      {"optimizer", "states", {"fp32", "bf16", "8bit"}, {"fp16"}},
      {"optimizer", "offload", {"none", "cpu", "nvme"}, {}},

      {"plan", "name", {}, {}},
      {"plan", "tensor", {"all"}, {}},
      {"plan", "ulysses", {"all"}, {}},
      {"plan", "ring", {"all"}, {}},
      {"plan", "data", {"all"}, {}},
      {"plan", "pipeline", {"all"}, {}},
      {"plan", "expert", {}, {}},
      {"plan", "ring_layout", {"contiguous", "zigzag", "striped"}, {}},
      {"plan", "ring_exchange", {"p2p", "all-gather"}, {}},
      {"plan", "placement", {}, {}},
      {"plan", "virtual_stages", {}, {}},
      {"plan", "schedule", {"1f1b", "interleaved"}, {}},
      {"plan", "data_replicate", {}, {}},
      {"plan", "head_chunks", {}, {}},
      {"plan", "sequence_chunk", {}, {}},

      {"sweep", "sweep", {}, {}},
      {"sweep", "base", {}, {}},
      {"sweep", "axes", {}, {}},
      {"sweep", "plans", {}, {}},

      {"range", "from", {}, {}},
      {"range", "to", {}, {}},
      {"range", "step", {}, {}},
      {"range", "factor", {}, {}},
  };
  return table;
}

const Key* find_key(std::string_view section, std::string_view name) {
  const auto found =
      std::find_if(keys().begin(), keys().end(), [&](const Key& k) { return k.section == section && k.name == name; });
  return found == keys().end() ? nullptr : &*found;
}

}  // namespace ulysim::scenario

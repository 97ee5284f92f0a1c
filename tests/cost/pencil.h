#pragma once

#include "hw_models/cost/kernel_profile.h"
#include "hw_models/spec/gpu.h"

namespace ulysim::cost {

/// A machine for pencil sums: 4 SMs, 1 TFLOP/s (fp8 2), 100 GB/s.
inline spec::Gpu pencil_gpu() {
  spec::Gpu gpu{.name = "pencil"};
  gpu.memory_bandwidth.value = Bandwidth(100e9);
  gpu.sms.value = 4;
  gpu.bf16.value = FlopRate(1e12);
  gpu.fp8 = spec::Sourced<FlopRate>{.value = FlopRate(2e12)};
  return gpu;
}

/// Half of every peak, a launch of 1 us; waves count whole, nothing else is lost.
inline KernelProfile pencil_profile() {
  const spec::Sourced<Duration> launch{.value = Duration(1'000'000)};
  KernelProfile profile{.name = "pencil"};
  profile.gemm = {.efficiency = {.value = 0.5},
                  .sustained = {.value = 1.0},
                  .tile_m = {.value = 128},
                  .tile_n = {.value = 128},
                  .wave_quantisation = {.value = 1.0},
                  .k_overhead = {.value = 0.0},
                  .launch = launch};
  profile.attention_sustained.value = 1.0;
  for (const auto implementation :
       {kernel::AttentionKernel::flash_attention_2, kernel::AttentionKernel::flash_attention_3,
        kernel::AttentionKernel::cudnn, kernel::AttentionKernel::sdpa}) {
    for (const auto direction : {kernel::Direction::forward, kernel::Direction::backward}) {
      profile.attention.push_back({.implementation = implementation,
                                   .direction = direction,
                                   .efficiency_64 = {.value = 0.25},
                                   .efficiency_128 = {.value = 0.5},
                                   .masked_factor = {.value = 0.8},
                                   .saturation_keys = {.value = 0.0},
                                   .imbalance = {.value = 0.0},
                                   .launch = launch});
    }
  }
  profile.memory_bound = {.bandwidth_efficiency = {.value = 0.5}, .launch = launch};
  return profile;
}

}  // namespace ulysim::cost

#include "sim/study/fixes.h"

#include <array>

namespace ulysim::study {

namespace {

using strategies::Offload;
using strategies::Plan;
using strategies::Recompute;

constexpr std::array<Fix, 6> kFixes{{
    {"tiled_loss: true", [](const Plan& p) { return !p.tiled_loss; }, [](Plan& p) { p.tiled_loss = true; }},
    {"zero: 3", [](const Plan& p) { return p.zero < 3 && p.mesh.size(workload::MeshAxis::pipeline) == 1; },
     [](Plan& p) { p.zero = 3; }},
    {"tiled_mlp: true", [](const Plan& p) { return !p.tiled_mlp; }, [](Plan& p) { p.tiled_mlp = true; }},
    {"optimizer: {offload: cpu}", [](const Plan& p) { return p.optimizer_offload == Offload::none && p.zero > 0; },
     [](Plan& p) { p.optimizer_offload = Offload::cpu; }},
    {"recompute: full", [](const Plan& p) { return p.recompute != Recompute::full || p.recompute_layers; },
     [](Plan& p) {
       p.recompute = Recompute::full;
       p.recompute_layers.reset();
     }},
    {"checkpoint_offload: cpu",
     [](const Plan& p) { return p.checkpoint_offload == Offload::none && p.recompute == Recompute::full; },
     [](Plan& p) { p.checkpoint_offload = Offload::cpu; }},
}};

}  // namespace

std::span<const Fix> fixes() {
  return kFixes;
}

}  // namespace ulysim::study

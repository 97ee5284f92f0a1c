#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "calibration/cuda/actions.h"
#include "calibration/cuda/cudnn_plan.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration::cuda {
namespace {

// What training uses: heads of Llama-3 whole and as a rank of Ulysses has them, blocks as a ring has them; then shapes
// that no fused attention supports, which must be refused and not computed wrongly.
constexpr BlockShape kShapes[] = {
    {.queries = 8192, .keys = 8192, .heads = 8, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 8192, .keys = 8192, .heads = 64, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 65536, .keys = 65536, .heads = 4, .kv_heads = 1, .head_dim = 128, .mask = Mask::causal},
    {.queries = 8192, .keys = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::full},
    {.queries = 4096, .keys = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::full},
    {.queries = 4096, .keys = 4096, .heads = 16, .kv_heads = 16, .head_dim = 64, .mask = Mask::causal},
    {.queries = 4096, .keys = 4096, .heads = 8, .kv_heads = 8, .head_dim = 100, .mask = Mask::causal},
    {.queries = 4096, .keys = 4096, .heads = 8, .kv_heads = 8, .head_dim = 320, .mask = Mask::causal},
    {.queries = 4096, .keys = 4096, .heads = 8, .kv_heads = 3, .head_dim = 128, .mask = Mask::causal},
};

void show(const BlockShape& shape, PlanDirection direction, const PlanTarget& target) {
  const std::string name = fmt::format(
      "{:8} heads {}:{} dim {} {}x{} {}", direction == PlanDirection::forward ? "forward" : "backward", shape.heads,
      shape.kv_heads, shape.head_dim, shape.queries, shape.keys, shape.mask == Mask::causal ? "causal" : "full");
  try {
    const AttentionPlan plan(shape, direction, target);
    fmt::print("accepted {} ({} operations)\n", name, plan.operations());
    fmt::print(stderr, "  engine {}, workspace {:.1f} MiB\n", plan.engine(),
               static_cast<double>(plan.workspace_bytes()) / (1024.0 * 1024.0));
  } catch (const std::runtime_error& error) {
    fmt::print("refused  {}\n", name);
    fmt::print(stderr, "  {}\n", error.what());
  }
}

}  // namespace

int show_plans(const Options& options) {
  std::ifstream file(*options.device, std::ios::binary);
  const PlanTarget target{.device_properties = {std::istreambuf_iterator<char>(file), {}}};
  if (!file || target.device_properties.empty()) {
    throw InputError({{.where = {.file = options.device->string()}, .message = "cannot be read"}});
  }
  for (const BlockShape& shape : kShapes) {
    show(shape, PlanDirection::forward, target);
    show(shape, PlanDirection::backward, target);
  }
  return 0;
}

}  // namespace ulysim::calibration::cuda

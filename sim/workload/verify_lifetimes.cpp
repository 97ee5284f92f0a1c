#include <fmt/format.h>

#include "sim/workload/verify_internal.h"

namespace ulysim::workload {

void verify_lifetimes(const BlockTemplate& block, std::int64_t index, std::int64_t count,
                      std::vector<std::string>& findings) {
  std::vector<int> state(block.tensors.size(), 0);  // 0 not there, 1 there, 2 gone
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    state[i] = tensor.persistent || comes_in(tensor.port) ? 1 : 0;
  }
  const auto find = [&](const Op& op, TensorId id, const char* what) {
    findings.push_back(fmt::format("{}.{}: {} {}", block.name, op.name, what, block.tensor(id).name));
  };
  std::vector<bool> used(block.tensors.size(), false);
  for (const Body& body : block.bodies) {
    for (const Op& op : body.ops) {
      if (!runs_in(op.when, index == 0, index + 1 == count)) {
        continue;
      }
      for (const TensorId id : op.allocs) {
        if (state[id.index()] != 0) {
          find(op, id, "allocates a second time");
        }
        state[id.index()] = 1;
      }
      for (const auto* list : {&op.reads, &op.writes}) {
        for (const TensorId id : *list) {
          used[id.index()] = true;
          if (state[id.index()] != 1) {
            find(op, id, "uses while it is not allocated");
          }
        }
      }
      for (const TensorId id : op.frees) {
        if (state[id.index()] != 1 || block.tensor(id).persistent) {
          find(op, id, "frees what is not its to free:");
        }
        state[id.index()] = 2;
      }
    }
  }
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const Tensor& tensor = block.tensors[i];
    const bool handed_on = goes_out(tensor.port);
    if (!tensor.persistent && used[i] && state[i] != (handed_on ? 1 : 2)) {
      findings.push_back(fmt::format("{}: {} is {}", block.name, tensor.name,
                                     handed_on ? "handed on but not allocated" : "allocated and never freed"));
    }
  }
}

}  // namespace ulysim::workload

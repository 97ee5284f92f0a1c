#include <algorithm>

#include "sim/workload/verify.h"

namespace ulysim::workload {

namespace {

struct Touch {
  Op* first_write{};
  Op* last_use{};
};

}  // namespace

void place_lifetimes(OpGraph& graph) {
  for (BlockTemplate& block : graph.templates) {
    std::vector<Touch> touches(block.tensors.size());
    for (Body& body : block.bodies) {
      for (Op& op : body.ops) {
        op.allocs = op.scratch;
        op.frees = op.scratch;
        for (const TensorId id : op.writes) {
          Touch& touch = touches[id.index()];
          touch.first_write = touch.first_write == nullptr ? &op : touch.first_write;
          touch.last_use = &op;
        }
        for (const TensorId id : op.reads) {
          touches[id.index()].last_use = &op;
        }
      }
    }
    for (std::size_t i = 0; i < block.tensors.size(); ++i) {
      const Tensor& tensor = block.tensors[i];
      const Touch& touch = touches[i];
      if (tensor.persistent || touch.last_use == nullptr) {
        continue;
      }
      if (!comes_in(tensor.port) && touch.first_write != nullptr) {
        touch.first_write->allocs.emplace_back(i);
      }
      if (!goes_out(tensor.port)) {
        touch.last_use->frees.emplace_back(i);
      }
    }
  }
}

}  // namespace ulysim::workload

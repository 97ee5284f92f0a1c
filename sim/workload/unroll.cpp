#include "sim/workload/unroll.h"

#include <algorithm>
#include <optional>

#include "sim/base/check.h"

namespace ulysim::workload {

namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// Who wrote each tensor of each block and micro-batch last, with ports resolved to the block that owns them.
class Writers {
 public:
  Writers(const OpGraph& graph, const Role& role) : graph_(graph) {
    std::int32_t blocks = 0;
    std::int32_t micro_batches = 0;
    for (const Instance& instance : role.program) {
      blocks = std::max(blocks, instance.block + 1);
      micro_batches = std::max(micro_batches, instance.micro_batch + 1);
      width_ = std::max(width_, graph.of(instance).tensors.size());
    }
    blocks_ = static_cast<std::size_t>(blocks);
    template_of_.assign(blocks_, nullptr);
    for (const Instance& instance : role.program) {
      template_of_[static_cast<std::size_t>(instance.block)] = &graph_.of(instance);
    }
    last_.assign(blocks_ * static_cast<std::size_t>(micro_batches) * width_, kNobody);
  }

  std::uint32_t& last(const Instance& instance, TensorId id) {
    auto block = static_cast<std::size_t>(instance.block);
    const Tensor& tensor = template_of_[block]->tensor(id);
    if (tensor.port == Port::input) {
      id = port_of(block - 1, Port::output);
      block -= 1;
    } else if (tensor.port == Port::grad_output) {
      id = port_of(block + 1, Port::grad_input);
      block += 1;
    } else if (tensor.port == Port::tied_input) {
      block = block_with(Port::tied_output);
      id = port_of(block, Port::tied_output);
    }
    return last_[(static_cast<std::size_t>(instance.micro_batch) * blocks_ + block) * width_ + id.index()];
  }

 private:
  std::size_t block_with(Port port) const {
    for (std::size_t block = 0; block < blocks_; ++block) {
      const BlockTemplate* own = template_of_[block];
      if (own != nullptr && std::any_of(own->tensors.begin(), own->tensors.end(),
                                        [port](const Tensor& tensor) { return tensor.port == port; })) {
        return block;
      }
    }
    return blocks_;
  }

  TensorId port_of(std::size_t block, Port port) const {
    ULYSIM_CHECK(block < blocks_ && template_of_[block] != nullptr, "a port leads to no block");
    const auto& tensors = template_of_[block]->tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].port == port) {
        return TensorId(i);
      }
    }
    ULYSIM_CHECK(false, "{} lacks the port that its neighbour reads", template_of_[block]->name);
    return {};
  }

  const OpGraph& graph_;
  std::size_t blocks_{};
  std::size_t width_{};
  std::vector<const BlockTemplate*> template_of_;
  std::vector<std::uint32_t> last_;
};

/// A collective launched from the compute stream starts after the kernels launched before it (PyTorch records an
/// event of the current stream); parameter gathers and copies have streams of their own that do not wait.
bool waits_for_kernels(Stream stream) {
  switch (stream) {
    case Stream::tensor_comm:
    case Stream::ulysses_comm:
    case Stream::ring_comm:
    case Stream::zero_reduce:
    case Stream::expert_comm:
      return true;
    case Stream::compute:
    case Stream::zero_gather:
    case Stream::device_to_host:
    case Stream::host_to_device:
    case Stream::host_work:
    case Stream::forward_send:
    case Stream::forward_receive:  // posted ahead of its use
    case Stream::backward_send:
    case Stream::backward_receive:
    case Stream::nvme_read:
    case Stream::nvme_write:
      return false;
  }
  return false;
}

class Unroller {
 public:
  Unroller(const OpGraph& graph, std::size_t role) : graph_(graph), role_(graph.roles[role]), writers_(graph, role_) {
    schedule_.role = role;
  }

  Schedule run() {
    for (std::size_t i = 0; i < role_.program.size(); ++i) {
      const Instance& instance = role_.program[i];
      const Body& body = graph_.of(instance).body(instance.phase);
      instance_begin_ = static_cast<std::uint32_t>(schedule_.ops.size());
      // The update starts when everything of the step before it is done.
      barrier_ = instance.phase == Phase::update;
      in_body_.assign(body.ops.size(), kNobody);
      for (std::size_t at = 0; at < body.ops.size(); ++at) {
        add(i, at,
            {.op = &body.ops[at], .instance = static_cast<std::uint32_t>(i), .trips = runs_of(body, body.ops[at])});
      }
    }
    schedule_.first_dependency.push_back(static_cast<std::uint32_t>(schedule_.dependencies.size()));
    return std::move(schedule_);
  }

 private:
  void add(std::size_t instance_index, std::size_t body_index, FlatOp flat) {
    const Instance& instance = role_.program[instance_index];
    const Op& op = *flat.op;
    if (!runs_in(op.when, instance.micro_batch == 0, instance.last_micro_batch)) {
      return;
    }
    const auto self = static_cast<std::uint32_t>(schedule_.ops.size());
    ULYSIM_CHECK(self != kNobody, "the program has too many ops");
    found_.clear();
    for (const TensorId id : op.reads) {
      depend_on(writers_.last(instance, id), op.stream);
    }
    for (const TensorId id : op.writes) {
      std::uint32_t& writer = writers_.last(instance, id);
      depend_on(writer, op.stream);
      writer = self;
    }
    for (const OpId before : op.after) {
      depend_on(in_body_[before.index()], op.stream);
    }
    const auto& kernels = schedule_.streams[static_cast<std::size_t>(Stream::compute)];
    if (waits_for_kernels(op.stream) && !kernels.empty()) {
      depend_on(kernels.back(), op.stream);
    }
    if (barrier_) {
      for (std::size_t s = 0; s < kStreams; ++s) {
        const auto& stream = schedule_.streams[s];
        const auto before = std::lower_bound(stream.begin(), stream.end(), instance_begin_);
        if (before != stream.begin()) {
          depend_on(*(before - 1), op.stream);
        }
      }
    }
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    schedule_.first_dependency.push_back(static_cast<std::uint32_t>(schedule_.dependencies.size()));
    schedule_.dependencies.insert(schedule_.dependencies.end(), found_.begin(), found_.end());
    schedule_.streams[static_cast<std::size_t>(op.stream)].push_back(self);
    schedule_.ops.push_back(flat);
    in_body_[body_index] = self;
  }

  void depend_on(std::uint32_t other, Stream own) {
    if (other != kNobody && schedule_.ops[other].op->stream != own) {
      found_.push_back(other);
    }
  }

  const OpGraph& graph_;
  const Role& role_;
  Writers writers_;
  Schedule schedule_;
  std::vector<std::uint32_t> in_body_;
  std::vector<std::uint32_t> found_;
  std::uint32_t instance_begin_{};
  bool barrier_{};
};

}  // namespace

Schedule unroll(const OpGraph& graph, std::size_t role) {
  return Unroller(graph, role).run();
}

}  // namespace ulysim::workload

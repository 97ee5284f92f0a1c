#include "sim/memory/accountant.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/workload/shape.h"

namespace ulysim::memory {
namespace {

/// A tensor of a template, all blocks and micro-batches together.
struct Account {
  const workload::BlockTemplate* block{};
  const workload::Tensor* tensor{};
  std::int64_t bytes{};       ///< of one copy; of a tensor in a loop, of one trip
  std::int64_t persistent{};  ///< copies that are always there and whose storage is their own
  std::int64_t alive{};
};

struct Entry {
  Instant at{};
  std::int8_t sign{};  ///< −1 sorts before +1
  std::uint32_t op{};
  std::uint32_t account{};
};

class Accountant {
 public:
  Accountant(const workload::OpGraph& graph, const workload::Schedule& schedule, const results::RankTimeline& rank)
      : graph_(graph), schedule_(schedule), rank_(rank) {
    ULYSIM_CHECK(rank.spans.size() == schedule.ops.size(), "{} spans of {} ops", rank.spans.size(),
                 schedule.ops.size());
    find_blocks();
    open_accounts();
    write_entries();
  }

  MemoryResult run() {
    return {.gpu = usage_of(workload::Space::gpu),
            .host = usage_of(workload::Space::host),
            .nvme = usage_of(workload::Space::nvme)};
  }

  std::vector<KindBytes> gpu_kinds_at(std::span<const Instant> instants) const {
    KindBytes held{};
    const auto count = [&](const Account& account, std::int64_t copies) {
      if (account.tensor->space == workload::Space::gpu) {
        held[static_cast<std::size_t>(account.tensor->kind)] += copies * account.bytes;
      }
    };
    for (const Account& account : accounts_) {
      count(account, account.persistent);
    }
    std::vector<KindBytes> out;
    std::size_t next = 0;
    for (const Instant at : instants) {
      for (; next < entries_.size() && entries_[next].at <= at; ++next) {
        count(accounts_[entries_[next].account], entries_[next].sign);
      }
      out.push_back(held);
    }
    return out;
  }

 private:
  void open_accounts() {
    std::vector<std::int64_t> blocks(graph_.templates.size(), 0);
    for (const std::optional<std::size_t> index : template_of_) {
      blocks[index.value_or(0)] += index ? 1 : 0;
    }
    for (const workload::BlockTemplate& block : graph_.templates) {
      const std::int64_t held = blocks[begin_.size()];
      begin_.push_back(accounts_.size());
      for (const workload::Tensor& tensor : block.tensors) {
        Account account{
            .block = &block, .tensor = &tensor, .persistent = tensor.persistent && !tensor.shared ? held : 0};
        if (tensor.loop < 0 && !tensor.shared) {
          account.bytes = workload::held_bytes(graph_, block.bodies.front(), tensor).value();
        }
        accounts_.push_back(account);
      }
    }
  }

  void find_blocks() {
    for (const workload::Instance& instance : program()) {
      const auto block = static_cast<std::size_t>(instance.block);
      if (template_of_.size() <= block) {
        template_of_.resize(block + 1);
      }
      template_of_[block] = instance.block_template.index();
    }
  }

  void write_entries() {
    for (std::uint32_t op = 0; op < schedule_.ops.size(); ++op) {
      const workload::FlatOp& flat = schedule_.ops[op];
      const workload::Instance& instance = program()[flat.instance];
      const workload::BlockTemplate& block = graph_.of(instance);
      const workload::Body& body = block.body(instance.phase);
      const auto enter = [&](TensorId id, Instant at, std::int8_t sign) {
        const std::size_t account = account_of(instance, id);
        const workload::Tensor& tensor = *accounts_[account].tensor;
        ULYSIM_CHECK(!tensor.persistent, "{}.{} allocates or frees {}, which is persistent", block.name, flat.op->name,
                     tensor.name);
        if (tensor.loop >= 0) {
          accounts_[account].bytes = workload::held_bytes(graph_, body, tensor).value();
        }
        entries_.push_back({.at = at, .sign = sign, .op = op, .account = static_cast<std::uint32_t>(account)});
      };
      for (const TensorId id : flat.op->allocs) {
        enter(id, flat.op->in_place ? rank_.spans[op].end : rank_.spans[op].begin, 1);
      }
      note_side_use(instance, *flat.op, rank_.spans[op].end);
      for (const TensorId id : flat.op->frees) {
        const Instant beside = last_side_use(instance, id);
        const bool recorded = block.tensor(id).recorded;
        enter(id, std::max(rank_.spans[op].end, recorded ? seen_by_host(op, beside) : beside), -1);
      }
    }
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::tuple(a.at.value(), a.sign, a.op) < std::tuple(b.at.value(), b.sign, b.op);
    });
  }

  using SideKey = std::tuple<std::int32_t, std::int32_t, std::size_t>;  // micro-batch, block, tensor

  /// An op beside the kernels (a transfer to the next rank of a ring) may end after the op that is last in program
  /// order and frees what both use.
  void note_side_use(const workload::Instance& instance, const workload::Op& op, Instant end) {
    if (op.stream == workload::Stream::compute) {
      return;
    }
    for (const auto* ids : {&op.reads, &op.writes}) {
      for (const TensorId id : *ids) {
        Instant& last = side_uses_[{instance.micro_batch, instance.block, id.index()}];
        last = std::max(last, end);
      }
    }
  }
  [[nodiscard]] Instant last_side_use(const workload::Instance& instance, TensorId id) {
    const auto found = side_uses_.find({instance.micro_batch, instance.block, id.index()});
    if (found == side_uses_.end()) {
      return {};
    }
    const Instant last = found->second;
    side_uses_.erase(found);
    return last;
  }

  /// When the first kernel behind `op` begins that the host issued after `done`: kernels before it were given their
  /// memory by a host that did not know of it yet. The end of the step when there is none.
  [[nodiscard]] Instant seen_by_host(std::uint32_t op, Instant done) const {
    const auto& kernels = schedule_.streams[static_cast<std::size_t>(workload::Stream::compute)];
    const auto knows = std::partition_point(kernels.begin(), kernels.end(), [&](std::uint32_t other) {
      return other <= op || rank_.spans[other].issued < done;
    });
    return knows == kernels.end() ? rank_.spans[kernels.back()].end : rank_.spans[*knows].begin;
  }

  /// A block's input is the output of the block before it, and its incoming gradient that of the block after it: one
  /// tensor with two names. It is kept under the name that allocates it, unless the reader keeps it as a checkpoint:
  /// that is what it is between forward and backward.
  [[nodiscard]] std::size_t account_of(const workload::Instance& instance, TensorId id) const {
    const std::size_t own = begin_[instance.block_template.index()] + id.index();
    const workload::Tensor& tensor = *accounts_[own].tensor;
    const auto block = static_cast<std::size_t>(instance.block);
    switch (tensor.port) {
      case workload::Port::input:
        return tensor.kind == workload::MemoryKind::checkpoints ? own
                                                                : account_of_port(block - 1, workload::Port::output);
      case workload::Port::output: {
        const std::optional<std::size_t> reader = find_port(block + 1, workload::Port::input);
        return reader && accounts_[*reader].tensor->kind == workload::MemoryKind::checkpoints ? *reader : own;
      }
      case workload::Port::grad_output:
        return account_of_port(block + 1, workload::Port::grad_input);
      case workload::Port::tied_input:
        for (std::size_t other = 0; other < template_of_.size(); ++other) {
          if (const auto found = find_port(other, workload::Port::tied_output)) {
            return *found;
          }
        }
        break;
      case workload::Port::tied_output:
      case workload::Port::grad_input:
      case workload::Port::none:
        break;
    }
    return own;
  }

  [[nodiscard]] std::optional<std::size_t> find_port(std::size_t block, workload::Port port) const {
    if (block >= template_of_.size() || !template_of_[block]) {
      return std::nullopt;
    }
    const std::size_t index = *template_of_[block];
    const workload::BlockTemplate& owner = graph_.templates[index];
    for (std::size_t i = 0; i < owner.tensors.size(); ++i) {
      if (owner.tensors[i].port == port) {
        return begin_[index] + i;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t account_of_port(std::size_t block, workload::Port port) const {
    const std::optional<std::size_t> found = find_port(block, port);
    ULYSIM_CHECK(found, "block {} lacks the port that its neighbour frees", block);
    return *found;
  }

  Usage usage_of(workload::Space space) {
    std::int64_t persistent = 0;
    for (const Account& account : accounts_) {
      if (account.tensor->space == space) {
        persistent += account.persistent * account.bytes;
      }
    }
    Usage usage{.curve = {{.at = Instant{}, .bytes = persistent}}, .peak = persistent};
    std::int64_t bytes = persistent;
    std::size_t peak_end = 0;  // entries up to here have happened at the peak
    for (std::size_t i = 0; i < entries_.size();) {
      const Instant at = entries_[i].at;
      bool changed = false;
      for (; i < entries_.size() && entries_[i].at == at; ++i) {
        const Account& account = accounts_[entries_[i].account];
        if (account.tensor->space == space) {
          bytes += entries_[i].sign * account.bytes;
          changed = true;
        }
      }
      if (!changed) {
        continue;
      }
      ULYSIM_CHECK(bytes >= persistent, "at {} ps more is freed than was allocated", at.value());
      if (usage.curve.back().at == at) {
        usage.curve.back().bytes = bytes;
      } else {
        usage.curve.push_back({.at = at, .bytes = bytes});
      }
      if (bytes > usage.peak) {
        usage.peak = bytes;
        usage.peak_at = at;
        peak_end = i;
      }
    }
    check_balance(space);
    list_holdings(space, peak_end, usage);
    return usage;
  }

  void count_alive(std::size_t entries) {
    for (Account& account : accounts_) {
      account.alive = account.persistent;
    }
    for (std::size_t i = 0; i < entries; ++i) {
      accounts_[entries_[i].account].alive += entries_[i].sign;
    }
  }

  void check_balance(workload::Space space) {
    count_alive(entries_.size());
    for (const Account& account : accounts_) {
      ULYSIM_CHECK(account.tensor->space != space || account.alive == account.persistent,
                   "the books of {}.{} do not balance: {} left", account.block->name, account.tensor->name,
                   account.alive - account.persistent);
    }
  }

  void list_holdings(workload::Space space, std::size_t entries, Usage& usage) {
    count_alive(entries);
    for (const Account& account : accounts_) {
      const std::int64_t bytes = account.alive * account.bytes;
      if (account.tensor->space != space || bytes == 0) {
        continue;
      }
      usage.at_peak[static_cast<std::size_t>(account.tensor->kind)] += bytes;
      usage.holdings.push_back({.name = account.block->name + "." + account.tensor->name,
                                .kind = account.tensor->kind,
                                .count = account.alive,
                                .bytes = bytes,
                                .pinned = account.tensor->pinned});
    }
    std::stable_sort(usage.holdings.begin(), usage.holdings.end(),
                     [](const Holding& a, const Holding& b) { return a.bytes > b.bytes; });
  }

  [[nodiscard]] const std::vector<workload::Instance>& program() const { return graph_.roles[schedule_.role].program; }

  const workload::OpGraph& graph_;
  const workload::Schedule& schedule_;
  const results::RankTimeline& rank_;
  std::vector<std::size_t> begin_;  ///< by template, its first account
  std::vector<Account> accounts_;
  std::vector<std::optional<std::size_t>> template_of_;  ///< by block
  std::vector<Entry> entries_;
  std::map<SideKey, Instant> side_uses_;
};

}  // namespace

MemoryResult account(const workload::OpGraph& graph, const workload::Schedule& schedule,
                     const results::RankTimeline& rank) {
  return Accountant(graph, schedule, rank).run();
}

std::vector<KindBytes> gpu_kinds_at(const workload::OpGraph& graph, const workload::Schedule& schedule,
                                    const results::RankTimeline& rank, std::span<const Instant> instants) {
  return Accountant(graph, schedule, rank).gpu_kinds_at(instants);
}

}  // namespace ulysim::memory

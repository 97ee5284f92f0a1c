#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/workload/unroll.h"
#include "sim/workload/verify_internal.h"

namespace ulysim::workload {

namespace {

/// Where one end of a message stands.
struct End {
  std::size_t role{};
  std::uint32_t op{};
  std::size_t stream{};
  std::size_t position{};  ///< in the stream
};
using MessageKey = std::pair<std::int64_t, std::int32_t>;  // tag, micro-batch

/// One role in the play.
struct Player {
  Schedule schedule{};
  std::vector<std::uint32_t> missing{};  ///< dependencies not done, by op
  std::vector<std::vector<std::uint32_t>> followers{};
  std::vector<bool> done{};
  std::array<std::size_t, kStreams> head{};
  std::array<std::int64_t, kCreditPools> out{};
  std::array<std::vector<std::uint32_t>, kCreditPools> acquirers{};  ///< in program order, in which credits are taken
  std::array<std::size_t, kCreditPools> next_acquirer{};
  std::size_t issued{};
  std::size_t kernels_issued{};  ///< ops of the compute stream
  std::size_t finished{};
};

Player start(const OpGraph& graph, std::size_t role) {
  Player player{.schedule = unroll(graph, role)};
  const std::size_t ops = player.schedule.ops.size();
  player.missing.resize(ops);
  player.followers.resize(ops);
  player.done.resize(ops, false);
  for (std::size_t op = 0; op < ops; ++op) {
    const auto dependencies = player.schedule.dependencies_of(op);
    player.missing[op] = static_cast<std::uint32_t>(dependencies.size());
    for (const std::uint32_t before : dependencies) {
      player.followers[before].push_back(static_cast<std::uint32_t>(op));
    }
    if (const CreditPool pool = player.schedule.ops[op].op->acquire; pool != CreditPool::none) {
      player.acquirers.at(static_cast<std::size_t>(pool)).push_back(static_cast<std::uint32_t>(op));
    }
  }
  return player;
}

class Play {
 public:
  explicit Play(const OpGraph& graph) : graph_(graph) {
    for (std::size_t role = 0; role < graph.roles.size(); ++role) {
      players_.push_back(start(graph, role));
      add_ends(role);
    }
  }

  void run(std::vector<std::string>& findings) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t role = 0; role < players_.size(); ++role) {
        moved = advance(role) || moved;
      }
    }
    for (std::size_t role = 0; role < players_.size(); ++role) {
      if (players_[role].finished < players_[role].schedule.ops.size()) {
        findings.push_back(blocked(role));
        continue;
      }
      for (std::size_t pool = 0; pool < kCreditPools; ++pool) {
        if (players_[role].out[pool] != 0) {
          findings.push_back(fmt::format("role {} ends with {} credits of pool {} not given back",
                                         graph_.roles[role].name, players_[role].out[pool], pool));
        }
      }
    }
  }

 private:
  bool advance(std::size_t role) {
    Player& player = players_[role];
    bool moved = issue(player);
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const auto& queue = player.schedule.streams[stream];
      while (player.head[stream] < queue.size() && ready(role, queue[player.head[stream]])) {
        finish(role, queue[player.head[stream]]);
        moved = true;
      }
    }
    return moved;
  }

  /// The host issues in order, and stops at an op that synchronises until what it waits for is done.
  static bool issue(Player& player) {
    const std::size_t before = player.issued;
    while (player.issued < player.schedule.ops.size()) {
      const Op& op = *player.schedule.ops[player.issued].op;
      if (op.drains && player.head[static_cast<std::size_t>(Stream::compute)] < player.kernels_issued) {
        break;
      }
      if (player.issued > 0 && player.schedule.ops[player.issued - 1].op->host_waits &&
          !player.done[player.issued - 1]) {
        break;
      }
      ++player.issued;
      player.kernels_issued += op.stream == Stream::compute ? 1 : 0;
    }
    return player.issued != before;
  }

  bool ready(std::size_t role, std::uint32_t index) {
    Player& player = players_[role];
    if (index >= player.issued || player.missing[index] > 0) {
      return false;
    }
    const Op& op = *player.schedule.ops[index].op;
    const auto pool = static_cast<std::size_t>(op.acquire);
    if (op.acquire != CreditPool::none && (player.out[pool] >= graph_.credit_windows[pool] ||
                                           player.acquirers[pool][player.next_acquirer[pool]] != index)) {
      return false;
    }
    const auto* message = std::get_if<PipelineWork>(&op.work);
    return message == nullptr || peer_waits(role, index, *message);
  }

  [[nodiscard]] MessageKey key_of(std::size_t role, std::uint32_t op, const PipelineWork& message) const {
    return {message.tag, graph_.roles[role].program[players_[role].schedule.ops[op].instance].micro_batch};
  }

  void add_ends(std::size_t role) {
    const Schedule& schedule = players_[role].schedule;
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      for (std::size_t at = 0; at < schedule.streams[stream].size(); ++at) {
        const std::uint32_t op = schedule.streams[stream][at];
        if (const auto* message = std::get_if<PipelineWork>(&schedule.ops[op].op->work)) {
          ends_[key_of(role, op, *message)].push_back({.role = role, .op = op, .stream = stream, .position = at});
        }
      }
    }
  }

  /// A message passes when its other end stands at the head of its stream with everything else it needs.
  bool peer_waits(std::size_t role, std::uint32_t op, const PipelineWork& message) {
    for (const End& end : ends_[key_of(role, op, message)]) {
      const Player& peer = players_[end.role];
      const auto& other = std::get<PipelineWork>(peer.schedule.ops[end.op].op->work);
      if (end.role != message.peer_role || other.peer_role != role || other.side == message.side) {
        continue;
      }
      const std::size_t head = peer.head[end.stream];
      // An end that has passed already keeps its partner's way open.
      return head > end.position || (head == end.position && end.op < peer.issued && peer.missing[end.op] == 0);
    }
    return false;
  }

  void finish(std::size_t role, std::uint32_t index) {
    Player& player = players_[role];
    const Op& op = *player.schedule.ops[index].op;
    player.done[index] = true;
    ++player.finished;
    ++player.head[static_cast<std::size_t>(op.stream)];
    if (op.acquire != CreditPool::none) {
      ++player.out[static_cast<std::size_t>(op.acquire)];
      ++player.next_acquirer[static_cast<std::size_t>(op.acquire)];
    }
    for (std::size_t pool = 0; pool < kCreditPools; ++pool) {
      player.out[pool] -= op.release.contains(static_cast<CreditPool>(pool)) ? 1 : 0;
    }
    for (const std::uint32_t follower : player.followers[index]) {
      --player.missing[follower];
    }
  }

  std::string blocked(std::size_t role) const {
    const Player& player = players_[role];
    std::string names;
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const auto& queue = player.schedule.streams[stream];
      if (player.head[stream] < queue.size()) {
        const FlatOp& flat = player.schedule.ops[queue[player.head[stream]]];
        const Instance& instance = graph_.roles[role].program[flat.instance];
        names += fmt::format("{}{} of block {} ({})", names.empty() ? "" : ", ", flat.op->name, instance.block,
                             name(static_cast<Stream>(stream)));
      }
    }
    return fmt::format("deadlock: role {} stops with {} blocked", graph_.roles[role].name, names);
  }

  const OpGraph& graph_;
  std::vector<Player> players_;
  std::map<MessageKey, std::vector<End>> ends_;
};

/// The collectives of a role in order, as (axes, kind).
std::vector<std::pair<std::uint16_t, CollectiveKind>> collectives_of(const OpGraph& graph, const Role& role) {
  std::vector<std::pair<std::uint16_t, CollectiveKind>> sequence;
  for (const Instance& instance : role.program) {
    for (const Op& op : graph.of(instance).body(instance.phase).ops) {
      if (const auto* work = std::get_if<CollectiveWork>(&op.work)) {
        sequence.emplace_back(work->axes.bits(), work->kind);
      }
    }
  }
  return sequence;
}

}  // namespace

void verify_execution(const OpGraph& graph, std::vector<std::string>& findings) {
  for (std::size_t role = 1; role < graph.roles.size(); ++role) {
    if (graph.roles[role].stage == graph.roles[role - 1].stage &&
        collectives_of(graph, graph.roles[role]) != collectives_of(graph, graph.roles[role - 1])) {
      findings.push_back(
          fmt::format("roles {} and {} enter other collectives", graph.roles[role - 1].name, graph.roles[role].name));
    }
  }
  Play(graph).run(findings);
}

}  // namespace ulysim::workload

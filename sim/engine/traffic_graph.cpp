#include "sim/engine/traffic_graph.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sim/base/check.h"

namespace ulysim::engine {
namespace {

collectives::Kind lowered_kind(workload::CollectiveKind kind) {
  switch (kind) {
    case workload::CollectiveKind::all_to_all:
      return collectives::Kind::all_to_all;
    case workload::CollectiveKind::all_gather:
      return collectives::Kind::all_gather;
    case workload::CollectiveKind::reduce_scatter:
      return collectives::Kind::reduce_scatter;
    case workload::CollectiveKind::all_reduce:
      return collectives::Kind::all_reduce;
    case workload::CollectiveKind::send_recv:
      return collectives::Kind::send_recv;
  }
  throw InternalError("a collective of no kind");
}

/// Drives are read and written by way of the host's memory.
Pattern::Kind copy_path(workload::Space from, workload::Space to) {
  using workload::Space;
  ULYSIM_CHECK(from == Space::host || to == Space::host, "a copy between a GPU and a drive past the host");
  if (from == Space::nvme) {
    return Pattern::Kind::from_nvme;
  }
  if (to == Space::nvme) {
    return Pattern::Kind::to_nvme;
  }
  return to == Space::host ? Pattern::Kind::to_host : Pattern::Kind::from_host;
}

struct Uses {
  std::vector<Pattern> patterns{};
  std::vector<std::vector<bool>> by_role{};  ///< of each pattern, whether the role uses it
};

Uses patterns_of(const workload::OpGraph& graph) {
  Uses uses;
  for (std::size_t role = 0; role < graph.roles.size(); ++role) {
    std::vector<const workload::Body*> seen;
    for (const workload::Instance& instance : graph.roles[role].program) {
      const workload::BlockTemplate& block = graph.of(instance);
      const workload::Body& body = block.body(instance.phase);
      if (std::find(seen.begin(), seen.end(), &body) != seen.end()) {
        continue;
      }
      seen.push_back(&body);
      for (const workload::Op& op : body.ops) {
        const std::optional<Pattern> pattern = pattern_of(graph, graph.roles[role], block, op);
        if (!pattern) {
          continue;
        }
        const auto known = std::find(uses.patterns.begin(), uses.patterns.end(), *pattern) - uses.patterns.begin();
        const auto index = static_cast<std::size_t>(known);
        if (index == uses.patterns.size()) {
          uses.patterns.push_back(*pattern);
          uses.by_role.emplace_back(graph.roles.size(), false);
        }
        uses.by_role[index][role] = true;
      }
    }
  }
  return uses;
}

class TrafficBuilder {
 public:
  TrafficBuilder(const workload::OpGraph& graph, const topology::Topology& topology)
      : graph_(graph), topology_(topology), uses_(patterns_of(graph)) {
    for (std::size_t rank = 0; rank < topology.ranks(); ++rank) {
      role_of_rank_.push_back(role_of(graph, RankId(rank)));
    }
  }

  TrafficGraph run() {
    out_.patterns = uses_.patterns;
    for (std::uint32_t p = 0; p < out_.patterns.size(); ++p) {
      const Pattern& pattern = out_.patterns[p];
      if (pattern.kind == Pattern::Kind::collective || pattern.kind == Pattern::Kind::shift) {
        add_groups(p);
      } else if (pattern.kind == Pattern::Kind::message) {
        add_messages(p);
      } else {
        add_host_paths(p);
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool uses(std::size_t rank, std::uint32_t pattern) const {
    return uses_.by_role[pattern][role_of_rank_[rank]];
  }

  void add_groups(std::uint32_t pattern) {
    const workload::AxisSet axes = out_.patterns[pattern].axes;
    const std::size_t world = topology_.ranks();
    std::vector<bool> covered(world, false);
    for (std::size_t rank = 0; rank < world; ++rank) {
      if (covered[rank] || !uses(rank, pattern)) {
        continue;
      }
      const std::vector<RankId> ranks = graph_.mesh.group(RankId(rank), axes);
      for (const RankId member : ranks) {
        covered[member.index()] = true;
      }
      if (out_.patterns[pattern].kind == Pattern::Kind::shift) {
        add_shift(pattern, ranks);
      } else {
        add_collective(pattern, ranks);
      }
    }
  }

  void add_collective(std::uint32_t pattern, const std::vector<RankId>& ranks) {
    const collectives::FlowProgram program = lower(out_.patterns[pattern].collective, ranks);
    begin_unit(pattern, program.divisor);
    for (const RankId rank : ranks) {
      out_.members.push_back({.rank = rank});
    }
    for (const collectives::Step& step : program.steps) {
      for (const collectives::Transfer& transfer : step.transfers) {
        add_transfer(ranks[transfer.from], ranks[transfer.to], transfer.chunks, step.repeat);
      }
      end_step(step.repeat);
    }
    end_unit();
  }

  void add_shift(std::uint32_t pattern, const std::vector<RankId>& ranks) {
    const collectives::FlowProgram program = lower(collectives::Kind::send_recv, ranks);
    ULYSIM_CHECK(program.steps.size() == 1, "a send_recv of {} steps", program.steps.size());
    for (const collectives::Transfer& transfer : program.steps.front().transfers) {
      begin_unit(pattern, program.divisor);
      out_.members.push_back({.rank = ranks[transfer.from], .part = 0});
      out_.members.push_back({.rank = ranks[transfer.to], .part = 1});
      add_transfer(ranks[transfer.from], ranks[transfer.to], transfer.chunks, program.steps.front().repeat);
      end_step(program.steps.front().repeat);
      end_unit();
    }
  }

  void add_messages(std::uint32_t pattern) {
    const auto from = static_cast<std::size_t>(out_.patterns[pattern].from_stage);
    const auto to = static_cast<std::size_t>(out_.patterns[pattern].to_stage);
    for (std::size_t rank = 0; rank < topology_.ranks(); ++rank) {
      if (graph_.mesh.coordinate(RankId(rank), workload::MeshAxis::pipeline) == out_.patterns[pattern].from_stage) {
        const std::vector<RankId> stages = graph_.mesh.group(RankId(rank), {workload::MeshAxis::pipeline});
        begin_unit(pattern, 1);
        out_.members.push_back({.rank = stages[from], .part = 0});
        out_.members.push_back({.rank = stages[to], .part = 1});
        add_transfer(stages[from], stages[to], 1, 1);
        end_step(1);
        end_unit();
      }
    }
  }

  void add_host_paths(std::uint32_t pattern) {
    for (std::size_t r = 0; r < topology_.ranks(); ++r) {
      if (!uses(r, pattern)) {
        continue;
      }
      const RankId rank(r);
      begin_unit(pattern, 1);
      out_.members.push_back({.rank = rank});
      switch (out_.patterns[pattern].kind) {
        case Pattern::Kind::to_host:
          add_route(topology_.to_host(rank), Fabric::node, 1, 1);
          break;
        case Pattern::Kind::from_host:
          add_route(topology_.from_host(rank), Fabric::node, 1, 1);
          break;
        case Pattern::Kind::host_memory:
          add_route(topology_.host_memory(rank), Fabric::node, 1, 1);
          break;
        case Pattern::Kind::to_nvme:
          add_route(topology_.to_nvme(rank), Fabric::node, 1, 1);
          break;
        case Pattern::Kind::from_nvme:
          add_route(topology_.from_nvme(rank), Fabric::node, 1, 1);
          break;
        case Pattern::Kind::collective:
        case Pattern::Kind::shift:
        case Pattern::Kind::message:
          break;
      }
      end_step(1);
      end_unit();
    }
  }

  [[nodiscard]] collectives::FlowProgram lower(collectives::Kind kind, const std::vector<RankId>& ranks) const {
    const collectives::Group group{.ranks = ranks, .topology = &topology_};
    return collectives::choose(kind, group).lower(kind, group);
  }

  void begin_unit(std::uint32_t pattern, std::uint32_t divisor) {
    unit_ = {.pattern = pattern,
             .members_begin = out_.members.size(),
             .transfers_begin = out_.transfers.size(),
             .divisor = divisor};
    step_ = 0;
  }
  void end_step(std::uint32_t repeat) {
    ++step_;
    unit_.steps += repeat;
  }
  void end_unit() {
    unit_.members_end = out_.members.size();
    unit_.transfers_end = out_.transfers.size();
    out_.units.push_back(unit_);
  }

  void add_transfer(RankId from, RankId to, std::uint32_t chunks, std::uint32_t repeat) {
    const Fabric fabric = topology_.node_of(from) == topology_.node_of(to) ? Fabric::node : Fabric::network;
    if (fabric == Fabric::network) {
      unit_.fabric = Fabric::network;
    }
    add_route(topology_.route(from, to), fabric, chunks, repeat);
  }

  template <class Route>
  void add_route(const Route& links, Fabric fabric, std::uint32_t chunks, std::uint32_t repeat) {
    ULYSIM_CHECK(!links.empty(), "a transfer over no link");
    const std::size_t begin = out_.transfer_links.size();
    out_.transfer_links.insert(out_.transfer_links.end(), links.begin(), links.end());
    out_.transfers.push_back({.unit = static_cast<std::uint32_t>(out_.units.size()),
                              .step = step_,
                              .repeat = repeat,
                              .chunks = chunks,
                              .fabric = fabric,
                              .links_begin = begin,
                              .links_end = out_.transfer_links.size()});
  }

  const workload::OpGraph& graph_;
  const topology::Topology& topology_;
  Uses uses_;
  std::vector<std::size_t> role_of_rank_;
  TrafficGraph out_;
  Unit unit_;
  std::uint32_t step_{};
};

}  // namespace

std::size_t role_of(const workload::OpGraph& graph, RankId rank) {
  const std::int64_t stage = graph.mesh.coordinate(rank, workload::MeshAxis::pipeline);
  for (std::size_t role = 0; role < graph.roles.size(); ++role) {
    if (graph.roles[role].stage == stage) {
      return role;
    }
  }
  throw InternalError(fmt::format("no role for stage {} of rank {}", stage, rank.index()));
}

std::optional<Pattern> pattern_of(const workload::OpGraph& graph, const workload::Role& role,
                                  const workload::BlockTemplate& block, const workload::Op& op) {
  if (const auto* collective = std::get_if<workload::CollectiveWork>(&op.work)) {
    const workload::AxisSet axes = graph.mesh.without_trivial(collective->axes);
    if (axes.empty()) {
      return std::nullopt;
    }
    ULYSIM_CHECK(!axes.contains(workload::MeshAxis::pipeline), "{}.{} is a collective of several stages", block.name,
                 op.name);
    const collectives::Kind kind = lowered_kind(collective->kind);
    return Pattern{.kind = kind == collectives::Kind::send_recv ? Pattern::Kind::shift : Pattern::Kind::collective,
                   .collective = kind,
                   .axes = axes};
  }
  if (const auto* message = std::get_if<workload::PipelineWork>(&op.work)) {
    const std::int64_t peer = graph.roles[message->peer_role].stage;
    const bool sends = message->side == workload::PipelineWork::Side::send;
    return Pattern{.kind = Pattern::Kind::message,
                   .collective = collectives::Kind::send_recv,
                   .from_stage = sends ? role.stage : peer,
                   .to_stage = sends ? peer : role.stage};
  }
  if (std::holds_alternative<workload::CopyWork>(op.work)) {
    ULYSIM_CHECK(!op.reads.empty() && !op.writes.empty(), "{}.{} copies nothing", block.name, op.name);
    const workload::Space from = block.tensor(op.reads.front()).space;
    const workload::Space to = block.tensor(op.writes.front()).space;
    ULYSIM_CHECK(from != to, "{}.{} copies from a memory to itself", block.name, op.name);
    return Pattern{.kind = copy_path(from, to)};
  }
  if (std::holds_alternative<workload::HostWork>(op.work)) {
    return Pattern{.kind = Pattern::Kind::host_memory};
  }
  return std::nullopt;
}

TrafficGraph traffic_of(const workload::OpGraph& graph, const topology::Topology& topology) {
  ULYSIM_CHECK(static_cast<std::int64_t>(topology.ranks()) == graph.mesh.world(),
               "a mesh of {} ranks on a machine of {}", graph.mesh.world(), topology.ranks());
  return TrafficBuilder(graph, topology).run();
}

}  // namespace ulysim::engine

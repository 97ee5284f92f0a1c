#include "sim/engine/program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/check.h"
#include "sim/workload/shape.h"

namespace ulysim::engine {
namespace {

struct IsEmpty {
  bool operator()(const kernel::Gemm& g) const { return g.m == 0 || g.n == 0 || g.k == 0 || g.batch == 0; }
  bool operator()(const kernel::Attention& a) const { return a.pairs == 0; }
  bool operator()(const kernel::MemoryBound& m) const { return m.traffic.value() == 0; }
};

class Preparer {
 public:
  Preparer(const workload::OpGraph& graph, const Folding& folding, const Machine& machine)
      : graph_(graph), folding_(folding), machine_(machine), by_ring_(workload::work_depends_on_ring(graph)) {}

  OpKind kind_of(const workload::Role& role, const workload::BlockTemplate& block, const workload::Body& body,
                 const workload::Op& op) const {
    OpKind kind{.op = &op};
    if (const std::optional<Pattern> pattern = pattern_of(graph_, role, block, op)) {
      kind.pattern = index_of(*pattern);
    }
    if (std::holds_alternative<workload::CollectiveWork>(op.work)) {
      kind.work = OpKind::Work::collective;
      kind.payload = workload::payload_of(graph_, block, body, op).value();
    } else if (std::holds_alternative<workload::PipelineWork>(op.work)) {
      kind.work = OpKind::Work::message;
      kind.payload = workload::payload_of(graph_, block, body, op).value();
    } else if (const auto* copy = std::get_if<workload::CopyWork>(&op.work)) {
      kind.work = OpKind::Work::copy;
      kind.payload = workload::payload_of(graph_, block, body, op).value();
      if (copy->buffer == workload::CopyWork::Buffer::pageable) {
        kind.copy_efficiency = machine_.cluster->node.pageable_copy_efficiency.value;
        ULYSIM_CHECK(kind.copy_efficiency > 0.0, "pageable copies run at {} of the pinned rate", kind.copy_efficiency);
      }
    } else if (const auto* host = std::get_if<workload::HostWork>(&op.work)) {
      kind.work = OpKind::Work::host;
      kind.payload = workload::host_traffic_of(graph_, block, body, op).value();
      kind.tail = host->fixed + core_time(block, *host, kind.payload);
    } else {
      kind.kernels = kernels_of(block, body, op);
    }
    ULYSIM_CHECK(kind.payload >= 0, "{}.{} moves {} bytes", block.name, op.name, kind.payload);
    return kind;
  }

 private:
  std::uint32_t index_of(const Pattern& pattern) const {
    for (std::uint32_t p = 0; p < folding_.patterns.size(); ++p) {
      if (folding_.patterns[p].pattern == pattern) {
        return p;
      }
    }
    throw InternalError("a pattern that the folding has not seen");
  }

  /// What the node's cores need beyond the time in which its memory moves the bytes undisturbed.
  Duration core_time(const workload::BlockTemplate& block, const workload::HostWork& host, std::int64_t payload) const {
    if (host.node_rate <= 0.0) {
      return {};
    }
    const spec::Cluster& cluster = *machine_.cluster;
    const auto ranks = static_cast<double>(std::min(cluster.gpus_per_node(), cluster.gpus_per_host()));
    std::int64_t elements = 0;
    for (const workload::Traffic& traffic : host.traffic) {
      elements += workload::local_elements(block.tensor(traffic.tensor), graph_.mesh);
    }
    const double cores = static_cast<double>(elements) * ranks / host.node_rate;
    const double memory = static_cast<double>(payload) * ranks * static_cast<double>(cluster.node.hosts.value) /
                          cluster.node.host_memory_bandwidth.value.value();
    return duration_from_seconds(std::max(0.0, cores - memory), "the host optimizer");
  }

  KernelCost kernel_at(const workload::BlockTemplate& block, const workload::Body& body, const workload::Op& op,
                       std::int64_t ring) const {
    const kernel::Kernel kernel = workload::kernel_of(graph_, block, body, op, {.ring = ring});
    const std::int64_t trips = workload::runs_of(body, op);
    const std::int64_t launches = kernel::launches(kernel) * trips;
    if (!std::visit(IsEmpty{}, kernel)) {
      return {.time = machine_.cost->time(kernel) * trips, .launches = launches};
    }
    // A block that the mask hides wholly is not called at all.
    const bool skipped = std::holds_alternative<kernel::Attention>(kernel);
    return {.time = Duration{}, .launches = skipped ? 0 : launches};
  }

  std::vector<KernelCost> kernels_of(const workload::BlockTemplate& block, const workload::Body& body,
                                     const workload::Op& op) const {
    // Only attention looks at token sets.
    if (!by_ring_ || !std::holds_alternative<workload::AttentionWork>(op.work)) {
      return {kernel_at(block, body, op, 0)};
    }
    std::map<std::int64_t, KernelCost> by_coordinate;
    std::vector<KernelCost> out;
    for (const RankClass& rank_class : folding_.ranks) {
      const std::int64_t ring = graph_.mesh.coordinate(rank_class.representative, workload::MeshAxis::ring);
      auto found = by_coordinate.find(ring);
      if (found == by_coordinate.end()) {
        found = by_coordinate.emplace(ring, kernel_at(block, body, op, ring)).first;
      }
      out.push_back(found->second);
    }
    return out;
  }

  const workload::OpGraph& graph_;
  const Folding& folding_;
  const Machine& machine_;
  bool by_ring_{};
};

/// Gives every op its kind; a kind is priced when it is first met.
void add_kinds(const Preparer& preparer, Program& program) {
  const workload::OpGraph& graph = *program.graph;
  const workload::Role& role = graph.roles[program.schedule->role];
  std::vector<std::uint32_t> known;  // by body and position: 1 + kind
  std::vector<std::size_t> begin(graph.templates.size() * workload::kPhases);
  for (std::size_t b = 0; b < begin.size(); ++b) {
    begin[b] = known.size();
    known.resize(known.size() + graph.templates[b / workload::kPhases].bodies[b % workload::kPhases].ops.size(), 0);
  }
  program.kind_of.reserve(program.schedule->ops.size());
  for (const workload::FlatOp& flat : program.schedule->ops) {
    const workload::Instance& instance = role.program[flat.instance];
    const workload::BlockTemplate& block = graph.of(instance);
    const workload::Body& body = block.body(instance.phase);
    const std::size_t slot =
        begin[instance.block_template.index() * workload::kPhases + static_cast<std::size_t>(instance.phase)] +
        static_cast<std::size_t>(flat.op - body.ops.data());
    if (known[slot] == 0) {
      program.kinds.push_back(preparer.kind_of(role, block, body, *flat.op));
      known[slot] = static_cast<std::uint32_t>(program.kinds.size());
    }
    program.kind_of.push_back(known[slot] - 1);
  }
}

void add_successors(Program& program) {
  const workload::Schedule& schedule = *program.schedule;
  const std::size_t size = schedule.ops.size();
  program.first_successor.assign(size + 1, 0);
  program.successors.resize(schedule.dependencies.size());
  for (const std::uint32_t before : schedule.dependencies) {
    ++program.first_successor[before + 1];
  }
  for (std::size_t op = 0; op < size; ++op) {
    program.first_successor[op + 1] += program.first_successor[op];
  }
  std::vector<std::uint32_t> next(program.first_successor.begin(), program.first_successor.end() - 1);
  for (std::uint32_t op = 0; op < size; ++op) {
    for (const std::uint32_t before : schedule.dependencies_of(op)) {
      program.successors[next[before]++] = op;
    }
  }
}

/// Finds the two ends of every message, by tag and micro-batch.
class MessageBook {
 public:
  void add(const workload::OpGraph& graph, Program& program) {
    const std::size_t role = program.schedule->role;
    program.message_of.resize(program.size());
    for (std::uint32_t op = 0; op < program.size(); ++op) {
      const workload::FlatOp& flat = program.schedule->ops[op];
      const auto* work = std::get_if<workload::PipelineWork>(&flat.op->work);
      if (work == nullptr) {
        continue;
      }
      const std::int32_t micro_batch = graph.roles[role].program[flat.instance].micro_batch;
      const auto [known, fresh] = index_.try_emplace({work->tag, micro_batch}, messages_.size());
      if (fresh) {
        messages_.emplace_back();
      }
      Message::End& end = messages_[known->second].ends.at(static_cast<std::size_t>(work->side));
      ULYSIM_CHECK(!end.known, "{} stands a second time", program.describe(op));
      end = {.role = role, .op = op, .known = true};
      program.message_of[op] = static_cast<std::uint32_t>(known->second);
    }
  }

  std::vector<Message> take(const std::vector<Program>& programs) {
    for (const Message& message : messages_) {
      const Message::End& one = message.ends[message.ends[0].known ? 0 : 1];
      ULYSIM_CHECK(message.ends[0].known && message.ends[1].known, "{} has no other end",
                   programs[one.role].describe(one.op));
      ULYSIM_CHECK(programs[message.ends[0].role].kind(message.ends[0].op).payload ==
                       programs[message.ends[1].role].kind(message.ends[1].op).payload,
                   "{} and its other end are not of one size", programs[one.role].describe(one.op));
    }
    return std::move(messages_);
  }

 private:
  std::map<std::pair<std::int64_t, std::int32_t>, std::size_t> index_;
  std::vector<Message> messages_;
};

}  // namespace

std::string Program::describe(std::size_t op) const {
  const workload::FlatOp& flat = schedule->ops[op];
  const workload::Instance& instance = graph->roles[schedule->role].program[flat.instance];
  std::string text = fmt::format("{}.{} (block {}, micro-batch {}", graph->of(instance).name, flat.op->name,
                                 instance.block, instance.micro_batch);
  if (flat.trips > 1) {
    text += fmt::format(", {} trips", flat.trips);
  }
  return text + ")";
}

Programs prepare(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules, const Folding& folding,
                 const Machine& machine) {
  const Preparer preparer(graph, folding, machine);
  Programs out;
  MessageBook book;
  for (const workload::Schedule& schedule : schedules) {
    Program program{.graph = &graph, .schedule = &schedule};
    add_kinds(preparer, program);
    add_successors(program);
    for (std::uint32_t op = 0; op < schedule.ops.size(); ++op) {
      const workload::CreditPool pool = schedule.ops[op].op->acquire;
      if (pool != workload::CreditPool::none) {
        program.acquirers[static_cast<std::size_t>(pool)].push_back(op);
      }
    }
    book.add(graph, program);
    out.of_role.push_back(std::move(program));
  }
  out.messages = book.take(out.of_role);
  return out;
}

}  // namespace ulysim::engine

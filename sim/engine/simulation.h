#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/fold.h"
#include "sim/engine/program.h"
#include "sim/network/flow_network.h"
#include "sim/results/timeline.h"

namespace ulysim::engine {

/// The state of a run. One *lane* per (rank class, stream); lane = class · kStreams + stream.
///
/// Determinism: at each instant everything that can happen happens, and no result depends on the order in which it is
/// worked through: credits are taken in program order, kernels are re-rated at the end of the instant, causes are
/// chosen by instants. That is also why folded and unfolded runs agree to the picosecond.
class Simulation {
 public:
  Simulation(const Programs& programs, const Folding& folding, const Machine& machine, LinkLoads loads);
  /// Runs to the end; to be called once.
  [[nodiscard]] results::Timeline run();

 private:
  // Work left of a kernel in ps × SMs, so that a rate of (SMs − taken)/SMs never rounds. 100 days × 256 SMs pass int64.
  __extension__ using Work = __int128;

  struct Lane {
    std::size_t position{};   ///< in the stream, of the op that runs or runs next
    Instant free_at{};        ///< end of the op before
    std::uint32_t last_op{};  ///< that op
    std::uint32_t pending{};  ///< transactions of the running op that have not ended
    std::uint32_t version{};  ///< of the kernel's pending end
    Work work{};              ///< left of the running kernel at `since`
    Instant since{};
    Instant retry_at{};  ///< an `issued` event is under way for this instant
    bool running{};
    bool kernel{};  ///< the running op is a kernel
    bool rated{};   ///< its end is scheduled, at the rate of `slowed`
    bool slowed{};
    bool credit_blocked{};  ///< only a credit was missing
  };

  struct Host {
    enum class State : std::uint8_t { issuing, draining, waiting, finished };
    State state{State::issuing};
    std::uint32_t next{};            ///< ops before this are issued
    std::uint32_t kernels_issued{};  ///< ops of the compute stream
    std::uint32_t kernels_done{};
    Instant clock{};
  };

  struct Pool {
    std::size_t next_acquirer{};  ///< in Program::acquirers
    std::int64_t held{};
    std::uint32_t last_op{};  ///< that took or gave a credit last
  };

  struct RankState {
    Host host{};
    std::array<Pool, workload::kCreditPools> pools{};
    std::uint32_t collectives{};  ///< running, not merely waiting for peers
    bool unrated{};               ///< stands in unrated_
  };

  /// A transaction under way.
  struct Activity {
    std::size_t role{};  ///< of the rank that launched it
    std::uint32_t op{};  ///< of that role
    std::uint32_t transaction{};
    std::uint32_t step{};
    std::uint32_t flows{};  ///< of the step, not yet completed
  };

  // engine.cpp: the loop
  void count_arrivals();
  void handle(const Event& event);
  void settle_rates();
  void report_links(results::Timeline& timeline);
  void record_loads();

  // host_stream.cpp
  void issue(std::uint32_t rank);
  void wake_host(std::uint32_t rank, std::uint32_t ended);

  // lanes.cpp
  void try_start(std::uint32_t lane);
  [[nodiscard]] bool take_credit(std::uint32_t lane, std::uint32_t op);
  void note_cause(std::uint32_t lane, std::uint32_t op);
  void start(std::uint32_t lane, std::uint32_t op);
  void finish(std::uint32_t lane);
  void finish_all();
  void mark_unrated(std::uint32_t rank);
  void rate_kernel(std::uint32_t lane);

  // transactions.cpp
  void arrive(std::uint32_t lane, std::uint32_t op);
  void launch(std::size_t role, std::uint32_t op, std::uint32_t transaction);
  void begin_step(std::uint32_t activity);
  void flow_done(network::FlowNetwork::Handle flow);
  void end_flows(std::uint32_t activity);
  void end_activity(std::uint32_t activity);
  [[nodiscard]] const OpKind& kind_of(const Activity& activity) const;
  [[nodiscard]] const Transaction& transaction_of(const Activity& activity) const;
  [[nodiscard]] std::uint32_t op_of(const Activity& activity, std::uint32_t rank) const;
  [[nodiscard]] Duration latency_of(const OpKind& kind, const Transaction& transaction) const;
  [[nodiscard]] double wire_bytes(const OpKind& kind, const Transaction& transaction, const TransactionStep& step,
                                  const FlowClass& flow) const;

  // blocked.cpp
  [[noreturn]] void report_blocked() const;
  [[nodiscard]] std::string obstacle(std::uint32_t lane, std::uint32_t op) const;

  [[nodiscard]] const Program& program_of(std::uint32_t rank) const {
    return programs_.of_role[folding_.ranks[rank].role];
  }
  [[nodiscard]] std::uint32_t lane_of(std::uint32_t rank, std::uint32_t op) const {
    return static_cast<std::uint32_t>(rank * workload::kStreams +
                                      static_cast<std::size_t>(program_of(rank).kind(op).op->stream));
  }
  [[nodiscard]] static std::uint32_t rank_of(std::uint32_t lane) {
    return static_cast<std::uint32_t>(lane / workload::kStreams);
  }
  [[nodiscard]] const std::vector<std::uint32_t>& stream_of(std::uint32_t lane) const {
    return program_of(rank_of(lane)).schedule->streams[lane % workload::kStreams];
  }
  [[nodiscard]] std::size_t at(std::uint32_t rank, std::uint32_t op) const { return begin_[rank] + op; }

  const Programs& programs_;
  const Folding& folding_;
  const Machine& machine_;
  network::FlowNetwork network_;
  EventQueue events_;
  Instant now_{};
  std::size_t left_{};  ///< ops that have not ended, over all classes

  std::vector<Lane> lanes_;
  std::vector<RankState> ranks_;
  std::vector<std::size_t> begin_;                        ///< by class, of its ops in what is kept by (class, op)
  std::vector<std::uint32_t> missing_;                    ///< by (class, op): dependencies not yet done
  std::vector<Instant> issued_;                           ///< by (class, op)
  std::vector<std::uint32_t> arrived_;                    ///< by (op, transaction): participants there
  std::vector<std::vector<std::size_t>> arrivals_begin_;  ///< by role and op, in arrived_
  std::vector<Activity> activities_;
  std::vector<std::uint32_t> free_activities_;
  std::vector<std::uint32_t> activity_of_;  ///< by flow handle
  std::vector<std::uint32_t> ended_;        ///< lanes whose op has ended, to be finished
  std::vector<std::uint32_t> unrated_;      ///< ranks with kernels to re-rate at the end of the instant
  std::vector<network::FlowNetwork::Handle> completed_;
  LinkLoads loads_;
  std::vector<double> rates_;  ///< scratch: what each link class carries now
  results::Timeline timeline_;
};

}  // namespace ulysim::engine

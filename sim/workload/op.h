#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hw_models/kernel/kernel.h"
#include "sim/base/ids.h"
#include "sim/base/quantity.h"
#include "sim/workload/collective_kind.h"
#include "sim/workload/mask.h"
#include "sim/workload/mesh.h"
#include "sim/workload/tensor.h"

namespace ulysim::workload {

/// Queues of one rank. Ops of a stream run in program order, one at a time; streams run side by side.
enum class Stream : std::uint8_t {
  compute,
  tensor_comm,
  ulysses_comm,
  ring_comm,
  zero_gather,
  zero_reduce,
  device_to_host,
  host_to_device,
  host_work,  ///< CPU cores of the node (offloaded optimizer)
  expert_comm,
  // Messages between pipeline stages. Each way has queues of its own, so that a stage which sends to its neighbour
  // does not keep what the neighbour sends it from coming in (batch_isend_irecv).
  forward_send,
  forward_receive,
  backward_send,
  backward_receive,
  nvme_read,  ///< asynchronous I/O between the drives and host memory, a queue each way (libaio handles)
  nvme_write,
};
inline constexpr std::size_t kStreams = 16;
[[nodiscard]] const char* name(Stream stream);

/// What a report calls the time or the bytes of an op.
enum class Purpose : std::uint8_t {
  attention,
  gemm,
  memory_bound,
  optimizer,
  tensor_parallel,
  ulysses,
  ring,
  parameters,  ///< ZeRO gathers
  gradients,   ///< gradient reductions
  checkpoint_offload,
  optimizer_offload,
  host,
  expert,    ///< tokens to their experts and back
  pipeline,  ///< activations and their gradients between stages
  parameter_offload,
};
inline constexpr std::size_t kPurposes = 15;
[[nodiscard]] const char* name(Purpose purpose);

/// Matrix product written in dimensions: sizes follow from the operands' shards. `reads` = {a, b}, `writes` = {c};
/// `m` are the rows (of a), `n` the columns (of b), `k` the contracted dimensions. A split contraction makes the
/// result partial over its axes. `groups` are dimensions of all three, with a product of its own for each index (the
/// experts of a grouped GEMM).
struct GemmWork {
  std::vector<Dim> m{};
  std::vector<Dim> n{};
  std::vector<Dim> k{};
  std::vector<Dim> groups{};
  kernel::Precision precision{kernel::Precision::bf16};
};

/// A fused attention call. Forward reads {q, k, v} and writes {o, lse}; backward reads {q, k, v, o, lse, d_o} and
/// writes {d_q, d_k, d_v}. Queries are the tokens of q at this rank; keys are those of k as held by the ring
/// neighbour `key_shift` places before (0: its own). Work is the exact number of unmasked pairs of the two sets.
struct AttentionWork {
  kernel::AttentionKernel implementation{kernel::AttentionKernel::flash_attention_2};
  kernel::Direction direction{kernel::Direction::forward};
  Mask mask{};
  std::int64_t key_shift{};
  bool gathered_keys{};  ///< k holds those of all ranks, of which the call takes that neighbour's
  /// In a loop over chunks of tokens: the chunk that the queries are, and the chunk that the keys are.
  struct Chunks {
    std::int64_t query{};
    std::int64_t key{};
  };
  std::optional<Chunks> chunks{};
  std::optional<std::size_t> table{};  ///< of OpGraph::attention_tables, once they are made
};

/// Bytes moved for each local element of a tensor.
struct Traffic {
  TensorId tensor{};
  double bytes_per_element{};
};

/// Element-wise and reduction kernels.
struct ElementwiseWork {
  std::vector<Traffic> traffic{};
  std::int64_t launches{1};
};

/// A collective over the group of `axes`. It names tensors: reads[i] turns into writes[i]; bytes follow from shards.
/// all_to_all moves the split by `axes` from dimension `from` to `to`; all_gather takes it off `from`;
/// reduce_scatter turns partial sums into a split of `to`; all_reduce removes partial sums;
/// send_recv passes the tensors to the next rank of the group.
struct CollectiveWork {
  CollectiveKind kind{CollectiveKind::all_to_all};
  AxisSet axes{};
  std::optional<Dim> from{};
  std::optional<Dim> to{};
};

/// A message between two roles (pipeline stages): `reads` are sent, `writes` are received. The rank that differs in the
/// pipeline coordinate only holds the other end. Ends match by tag and micro-batch; the message passes when both ends
/// are there.
struct PipelineWork {
  enum class Side : std::uint8_t { send, receive };
  Side side{Side::send};
  std::uint32_t peer_role{};
  std::int64_t tag{};
};

/// A copy between GPU and host memory, or between host memory and the drives: reads[i] → writes[i].
struct CopyWork {
  enum class Buffer : std::uint8_t { pinned, pageable };
  Buffer buffer{Buffer::pinned};
};

/// Work of the host: `traffic` over the node's memory (CPU Adam), then `fixed`. `node_rate`, when above 0, bounds it by
/// the node's cores: elements of the traffic tensors a second, for all ranks of the node together.
struct HostWork {
  std::vector<Traffic> traffic{};
  Duration fixed{};
  double node_rate{};
};

using Work = std::variant<GemmWork, AttentionWork, ElementwiseWork, CollectiveWork, PipelineWork, CopyWork, HostWork>;

/// In which micro-batches of a step an op runs.
enum class When : std::uint8_t { every_micro_batch, last_micro_batch, first_micro_batch };

[[nodiscard]] constexpr bool runs_in(When when, bool is_first, bool is_last) {
  return when == When::every_micro_batch || (when == When::first_micro_batch ? is_first : is_last);
}

/// A pool of credits: an op with `acquire` waits until fewer than `window` holders are out; the op with `release`
/// returns one to each of its pools. Item j so cannot start before item j−window is released, across layers.
enum class CreditPool : std::uint8_t {
  none,
  parameters,
  checkpoint_fetch,
  checkpoint_stash,
  checkpoint_store,
  nvme_buffers,
  reductions,
  chunk_fetch
};
inline constexpr std::size_t kCreditPools = 8;

class CreditSet {
 public:
  constexpr CreditSet() = default;
  constexpr CreditSet(std::initializer_list<CreditPool> pools) {
    for (const CreditPool pool : pools) {
      insert(pool);
    }
  }
  constexpr void insert(CreditPool pool) { bits_ = static_cast<std::uint8_t>(bits_ | bit(pool)); }
  constexpr void insert(CreditSet others) { bits_ = static_cast<std::uint8_t>(bits_ | others.bits_); }
  [[nodiscard]] constexpr bool contains(CreditPool pool) const { return (bits_ & bit(pool)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  friend constexpr bool operator==(CreditSet a, CreditSet b) { return a.bits_ == b.bits_; }

 private:
  static constexpr unsigned bit(CreditPool pool) {
    return pool == CreditPool::none ? 0U : 1U << static_cast<unsigned>(pool);
  }
  std::uint8_t bits_{};
};

/// Part of a block: passes find what they rewrite by this, not by name.
enum class Region : std::uint8_t { other, core_attention, mlp, loss, experts };

struct Op {
  std::string name{};
  Work work{};
  std::vector<TensorId> reads{};
  std::vector<TensorId> writes{};
  std::vector<TensorId> scratch{};  ///< there while the op runs and no longer (a receive buffer)
  std::vector<OpId> after{};        ///< order edges within the body, beside the data edges of reads and writes
  std::vector<TensorId> allocs{};   ///< at its start; filled by place_lifetimes()
  std::vector<TensorId> frees{};    ///< at its end
  Stream stream{Stream::compute};
  Purpose purpose{Purpose::memory_bound};
  Region region{Region::other};
  When when{When::every_micro_batch};
  std::int32_t loop{-1};  ///< index into the body's loops
  /// One trip of its loop: the trips are written out one by one, since other streams work between them.
  std::optional<std::int64_t> part{};
  std::int64_t repeats{1};  ///< with `part`: runs so often in a row, each time on another part, with the same work
  CreditPool acquire{CreditPool::none};
  CreditSet release{};
  bool recomputed{};  ///< repeats work of the forward pass: no model FLOPs
  bool host_waits{};  ///< the host issues nothing more until this op is done
  bool in_place{};    ///< what it writes takes the place of what it reads for the last time
  bool drains{};      ///< the host first waits for the compute ops issued before (.item(), a synchronisation)
};

}  // namespace ulysim::workload

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/workload/mesh.h"

namespace ulysim::workload {

/// What an extent of a tensor counts. Two tensors of one op that share a Dim must be split alike there.
enum class Dim : std::uint8_t {
  batch,
  tokens,
  hidden,
  heads,
  kv_heads,
  head_dim,
  ffn,
  vocab,
  elements,
  v_head_dim,  ///< of V and O where it is not that of Q and K (multi-head latent attention)
  nope_dim,    ///< of a key head, the part without position
  q_latent,    ///< low-rank queries
  kv_down,     ///< low-rank keys and values with the rotary key beside them
  kv_latent,   ///< low-rank keys and values
  experts,     ///< routed experts
  slots,       ///< tokens of one routed expert: each token stands there once for each expert that it visits
  router,      ///< scores of the router, one for each routed expert
  adapter,     ///< inner width of a low-rank adapter
  matrices,    ///< of one shape, that an optimizer treats as matrices (Muon)
  rows,        ///< of such a matrix, the shorter side
  columns,     ///< and the longer one
  gram,        ///< the other side of rows × rows
};
[[nodiscard]] const char* name(Dim dim);

/// How a ring splits the sequence over its ranks. Zigzag: rank r holds chunks r and 2R−1−r of 2R; striped: token
/// t belongs to rank t mod R.
enum class Layout : std::uint8_t { contiguous, zigzag, striped };
[[nodiscard]] const char* name(Layout layout);

/// One dimension: its global size, and the axes over which it is split, outermost first.
struct Extent {
  Dim dim{Dim::elements};
  std::int64_t size{1};
  std::vector<MeshAxis> split{};
  Layout layout{Layout::contiguous};  ///< of tokens over the ring axis
  std::int64_t replicas{1};           ///< copies of each key/value head that `size` counts, one to a rank that needs it
  double busiest{1.0};                ///< what the busiest rank holds over what it holds on average
  std::int64_t multiple{1};           ///< padded to a multiple of this; the model has `size`

  [[nodiscard]] std::int64_t padded_size() const { return (size + multiple - 1) / multiple * multiple; }
  [[nodiscard]] bool split_by(MeshAxis axis) const;
  friend bool operator==(const Extent& a, const Extent& b) {
    return a.dim == b.dim && a.size == b.size && a.split == b.split && a.layout == b.layout && a.multiple == b.multiple;
  }
};

/// Of a rank: its GPU, the memory of its host, the drives of its host.
enum class Space : std::uint8_t { gpu, host, nvme };

/// What a tensor's bytes are reported as.
enum class MemoryKind : std::uint8_t {
  weights,
  gradients,
  optimizer_states,
  gathered_parameters,
  checkpoints,
  activations,
  attention_workspace,
  logits,
  communication_buffers,
};
inline constexpr std::size_t kMemoryKinds = 9;
[[nodiscard]] const char* name(MemoryKind kind);

/// How a tensor meets other blocks. A block's `output` is the next block's `input`; its `grad_output` (the gradient
/// that comes in) is the next block's `grad_input`. What the head's backward leaves in `tied_output`, its gradient of
/// the table that it shares with the embedding, that one's backward takes up in `tied_input`.
enum class Port : std::uint8_t { none, input, output, grad_output, grad_input, tied_output, tied_input };

/// Whether another block allocates the tensor of this port, or frees it.
[[nodiscard]] constexpr bool comes_in(Port port) {
  return port == Port::input || port == Port::grad_output || port == Port::tied_input;
}
[[nodiscard]] constexpr bool goes_out(Port port) {
  return port == Port::output || port == Port::grad_input || port == Port::tied_output;
}

/// A tensor by shape and sharding; its bytes follow.
struct Tensor {
  std::string name{};
  std::vector<Extent> shape{};
  std::int64_t element_bytes{2};
  std::int64_t block_elements{1};  ///< so many elements take `element_bytes` (4-bit weights with their scale)
  AxisSet partial{};               ///< axes over which this holds one summand of the sum
  Space space{Space::gpu};
  MemoryKind kind{MemoryKind::activations};
  Port port{Port::none};
  bool persistent{};  ///< allocated for the whole step (weights, gradient shards, optimizer states)
  bool parameter{};   ///< a weight that ops read
  std::optional<std::int64_t>
      gathered_bytes{};  ///< of a parameter: what an element takes once gathered, if not as here
  bool frozen{};         ///< of a parameter: it is not trained, has neither gradient nor optimizer states
  bool shared{};         ///< the storage of another block's tensor (tied embeddings): not counted again
  bool pinned{};         ///< in host memory: a block of pinned memory of its own
  /// Another stream than that of its block works on it, and once freed the block serves nothing that the host issues
  /// before it has seen that work done (PyTorch's CUDACachingAllocator, recordStream).
  bool recorded{};
  std::int32_t loop{-1};  ///< of its body: holds what one trip works on, a part of the tokens or of the heads

  [[nodiscard]] const Extent* find(Dim dim) const;
  [[nodiscard]] Extent* find(Dim dim);
  /// What counts its samples: tokens, or the slots of experts. nullptr where it holds no samples (weights).
  [[nodiscard]] const Extent* rows() const;
  [[nodiscard]] Extent* rows();
};

/// A weight that multiplies: neither norm nor bias.
[[nodiscard]] bool is_matrix(const Tensor& tensor);

/// Local size of one extent: ceil(size / product of the split axes' sizes), of the busiest rank.
[[nodiscard]] std::int64_t local_size(const Extent& extent, const Mesh& mesh);
/// Elements that one rank holds.
[[nodiscard]] std::int64_t local_elements(const Tensor& tensor, const Mesh& mesh);
[[nodiscard]] Bytes local_bytes(const Tensor& tensor, const Mesh& mesh);
/// What `elements` of the tensor take.
[[nodiscard]] Bytes bytes_of(const Tensor& tensor, std::int64_t elements);
/// Elements of the whole tensor, padding counted and replication not.
[[nodiscard]] std::int64_t global_elements(const Tensor& tensor);

}  // namespace ulysim::workload

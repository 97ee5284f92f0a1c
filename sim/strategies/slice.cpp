#include "sim/strategies/slice.h"

#include <algorithm>
#include <set>

#include "sim/strategies/rewrite.h"

namespace ulysim::strategies {

using namespace workload;

bool holds(const Tensor& tensor, Dim heads) {
  return tensor.rows() != nullptr && tensor.find(heads) != nullptr;
}

bool holds_heads(const Tensor& tensor) {
  return holds(tensor, Dim::heads) || holds(tensor, Dim::kv_heads);
}

std::size_t find_attention(const Body& body) {
  const auto found = std::find_if(body.ops.begin(), body.ops.end(),
                                  [](const Op& op) { return std::holds_alternative<AttentionWork>(op.work); });
  return static_cast<std::size_t>(found - body.ops.begin());
}

std::vector<std::size_t> makers_of_heads(const BlockTemplate& block, const Body& body, std::size_t attention) {
  const Op& call = body.ops[attention];
  std::set<std::size_t> wanted;
  for (const TensorId id : call.reads) {
    wanted.insert(id.index());
  }
  std::vector<std::size_t> found;
  for (std::size_t i = attention; i-- > 0;) {
    const Op& op = body.ops[i];
    const bool makes = std::any_of(op.writes.begin(), op.writes.end(), [&](TensorId id) {
      return wanted.count(id.index()) != 0 && holds_heads(block.tensor(id));
    });
    if (!makes) {
      continue;
    }
    found.insert(found.begin(), i);
    for (const TensorId id : op.reads) {
      if (holds_heads(block.tensor(id))) {
        wanted.insert(id.index());
      }
    }
  }
  return found;
}

std::vector<std::size_t> users_of_heads(const BlockTemplate& block, const Body& body, std::size_t attention) {
  std::set<std::size_t> made;
  for (const TensorId id : body.ops[attention].writes) {
    made.insert(id.index());
  }
  std::vector<std::size_t> found;
  for (std::size_t i = attention + 1; i < body.ops.size(); ++i) {
    const Op& op = body.ops[i];
    const bool uses = std::any_of(op.reads.begin(), op.reads.end(), [&](TensorId id) {
      return made.count(id.index()) != 0 && holds_heads(block.tensor(id));
    });
    if (!uses) {
      continue;
    }
    found.push_back(i);
    for (const TensorId id : op.writes) {
      if (holds_heads(block.tensor(id))) {
        made.insert(id.index());
      }
    }
  }
  return found;
}

std::vector<Op> take_inputs_of(const std::vector<Op>& ops, std::vector<Op>& behind) {
  std::set<std::size_t> wanted;
  const auto want = [&wanted](const Op& op) {
    for (const TensorId id : op.reads) {
      wanted.insert(id.index());
    }
  };
  std::for_each(ops.begin(), ops.end(), want);
  std::vector<bool> serves(behind.size());
  for (std::size_t i = behind.size(); i-- > 0;) {
    const std::vector<TensorId>& writes = behind[i].writes;
    serves[i] = std::any_of(writes.begin(), writes.end(), [&](TensorId id) { return wanted.count(id.index()) != 0; });
    if (serves[i]) {
      want(behind[i]);
    }
  }
  std::vector<Op> taken;
  std::vector<Op> left;
  for (std::size_t i = 0; i < behind.size(); ++i) {
    (serves[i] ? taken : left).push_back(std::move(behind[i]));
  }
  behind = std::move(left);
  return taken;
}

std::vector<Op> share_of(const BlockTemplate& block, const Op& op, Dim heads) {
  const Dim others = heads == Dim::heads ? Dim::kv_heads : Dim::heads;
  const auto touches = [&](Dim dim) {
    const auto has = [&](TensorId id) { return holds(block.tensor(id), dim); };
    return std::any_of(op.reads.begin(), op.reads.end(), has) || std::any_of(op.writes.begin(), op.writes.end(), has);
  };
  if (!touches(others)) {
    return {op};
  }
  if (!touches(heads)) {
    return {};
  }
  Op half = op;
  const auto is_theirs = [&](TensorId id) { return holds(block.tensor(id), others); };
  std::erase_if(half.reads, is_theirs);
  // What has no heads (the gradient of a rotary key that all share) comes out with the keys.
  std::erase_if(half.writes,
                [&](TensorId id) { return is_theirs(id) || (heads == Dim::heads && !holds_heads(block.tensor(id))); });
  if (auto* work = std::get_if<ElementwiseWork>(&half.work)) {
    std::erase_if(work->traffic, [&](const Traffic& traffic) { return is_theirs(traffic.tensor); });
    work->launches = std::max<std::int64_t>(1, work->launches / 2);
  }
  half.name += heads == Dim::heads ? "_q" : "_k";
  return {half};
}

Op part_of(BlockTemplate& block, Op op, std::int32_t loop, std::int64_t part, const std::string& suffix,
           Renamed& renamed) {
  op.loop = loop;
  op.part = part;
  op.name += suffix;
  for (const TensorId id : std::vector<TensorId>(op.reads)) {
    const auto own = renamed.find(id.index());
    if (own != renamed.end()) {
      replace_read(op, id, own->second);
    }
  }
  for (const TensorId id : std::vector<TensorId>(op.writes)) {
    if (!holds_heads(block.tensor(id))) {
      continue;
    }
    auto own = renamed.find(id.index());
    if (own == renamed.end()) {
      Tensor tensor = like(block.tensor(id), block.tensor(id).name + suffix);
      tensor.loop = loop;
      own = renamed.emplace(id.index(), block.add(std::move(tensor))).first;
    }
    replace_write(op, id, own->second);
  }
  return op;
}

}  // namespace ulysim::strategies

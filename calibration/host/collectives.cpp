#include "calibration/host/collectives.h"

#include <algorithm>
#include <cstring>

#include "sim/base/check.h"

namespace ulysim::calibration::host {
namespace {

template <class T>
std::span<T> block(std::span<T> whole, int index, int count) {
  const std::size_t length = whole.size() / static_cast<std::size_t>(count);
  return whole.subspan(static_cast<std::size_t>(index) * length, length);
}

int wrapped(int rank, int size) {
  return (rank % size + size) % size;
}

/// Copies with memcpy, as every transport does: the copy to oneself is timed like the others.
void copy(std::span<const float> from, std::span<float> to) {
  if (!from.empty()) {
    std::memcpy(to.data(), from.data(), from.size_bytes());
  }
}

}  // namespace

void all_to_all(Transport& transport, std::span<const float> send, std::span<float> receive) {
  const int size = transport.size();
  const int rank = transport.rank();
  ULYSIM_CHECK(send.size() == receive.size() && send.size() % static_cast<std::size_t>(size) == 0,
               "{} and {} elements for {} ranks", send.size(), receive.size(), size);
  copy(block(send, rank, size), block(receive, rank, size));
  for (int step = 1; step < size; ++step) {
    const int to = wrapped(rank + step, size);
    const int from = wrapped(rank - step, size);
    transport.send_recv({to, std::as_bytes(block(send, to, size))},
                        {from, std::as_writable_bytes(block(receive, from, size))});
  }
}

void all_gather(Transport& transport, std::span<const float> send, std::span<float> receive) {
  const int size = transport.size();
  const int rank = transport.rank();
  copy(send, block(receive, rank, size));
  for (int step = 0; step + 1 < size; ++step) {
    const int mine = wrapped(rank - step, size);
    const int next = wrapped(mine - 1, size);
    transport.send_recv({wrapped(rank + 1, size), std::as_bytes(block(receive, mine, size))},
                        {wrapped(rank - 1, size), std::as_writable_bytes(block(receive, next, size))});
  }
}

void reduce_scatter(Transport& transport, std::span<const float> send, std::span<float> receive,
                    std::span<float> work) {
  const int size = transport.size();
  const int rank = transport.rank();
  if (size == 1) {
    copy(send, receive);
    return;
  }
  // Block b starts at rank b + 1 and collects a summand at every rank on its way round to rank b.
  std::span<const float> outgoing = block(send, wrapped(rank - 1, size), size);
  for (int step = 0; step + 1 < size; ++step) {
    const int arriving = wrapped(rank - step - 2, size);
    std::span<float> sum = step + 2 == size ? receive : block(work, arriving, size);
    transport.send_recv({wrapped(rank + 1, size), std::as_bytes(outgoing)},
                        {wrapped(rank - 1, size), std::as_writable_bytes(sum)});
    const std::span<const float> own = block(send, arriving, size);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += own[i];
    }
    outgoing = sum;
  }
}

void shift(Transport& transport, std::span<const float> send, std::span<float> receive) {
  const int size = transport.size();
  if (size == 1) {
    copy(send, receive);
    return;
  }
  transport.send_recv({wrapped(transport.rank() + 1, size), std::as_bytes(send)},
                      {wrapped(transport.rank() - 1, size), std::as_writable_bytes(receive)});
}

}  // namespace ulysim::calibration::host

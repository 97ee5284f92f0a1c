// A RankId is never taken for a LinkId.
#include "sim/base/ids.h"

namespace {
std::size_t link_index(ulysim::LinkId link) {
  return link.index();
}
}  // namespace

[[maybe_unused]] std::size_t ask() {
#ifdef ULYSIM_MUST_NOT_COMPILE
  return link_index(ulysim::RankId(1));
#else
  return link_index(ulysim::LinkId(1));
#endif
}

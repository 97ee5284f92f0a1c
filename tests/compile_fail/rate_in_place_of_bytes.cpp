// The physical law takes its arguments in one order: what, then how fast.
#include "sim/base/quantity.h"

[[maybe_unused]] ulysim::Duration time() {
#ifdef ULYSIM_MUST_NOT_COMPILE
  return ulysim::transfer_time(ulysim::Bandwidth(1.0), ulysim::Bytes(1), "link");
#else
  return ulysim::transfer_time(ulysim::Bytes(1), ulysim::Bandwidth(1.0), "link");
#endif
}

// Instants move by durations; two of them have no sum.
#include "sim/base/quantity.h"

[[maybe_unused]] ulysim::Instant later() {
#ifdef ULYSIM_MUST_NOT_COMPILE
  return ulysim::Instant(1) + ulysim::Instant(1);
#else
  return ulysim::Instant(1) + ulysim::Duration(1);
#endif
}

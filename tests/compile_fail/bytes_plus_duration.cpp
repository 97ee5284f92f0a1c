// A size and a time are never added.
#include "sim/base/quantity.h"

[[maybe_unused]] ulysim::Bytes sum() {
#ifdef ULYSIM_MUST_NOT_COMPILE
  return ulysim::Bytes(1) + ulysim::Duration(1);
#else
  return ulysim::Bytes(1) + ulysim::Bytes(1);
#endif
}

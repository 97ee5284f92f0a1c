// A bare number does not turn into a quantity by itself.
#include "sim/base/quantity.h"

[[maybe_unused]] ulysim::Bytes size() {
#ifdef ULYSIM_MUST_NOT_COMPILE
  const ulysim::Bytes bytes = 80;
#else
  const ulysim::Bytes bytes{80};
#endif
  return bytes;
}

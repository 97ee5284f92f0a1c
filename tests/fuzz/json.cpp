// Question: is every text either read into a legal tree, or refused with a located sentence?

#include "tests/fuzz/document_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ulysim::config::check_document(ulysim::config::parse_json,
                                 std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

// The page that reports/web builds, as bytes of the program: ULYSIM_REPORT_PAGE is the file, when there is one.

#include "reports/html.h"

#ifdef ULYSIM_REPORT_PAGE

// The assembler reads the file: as an array of numbers it would take the compiler minutes.
asm(".section .rodata\n"
    ".global ulysim_report_page_begin\n"
    ".global ulysim_report_page_end\n"
    "ulysim_report_page_begin:\n"
    ".incbin \"" ULYSIM_REPORT_PAGE
    "\"\n"
    "ulysim_report_page_end:\n"
    ".byte 0\n"
    ".previous\n");

// NOLINTBEGIN(readability-identifier-naming): the names of the assembler's text above.
extern "C" {
extern const char ulysim_report_page_begin[];
extern const char ulysim_report_page_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace ulysim::reports {

std::string_view report_page() {
  return {ulysim_report_page_begin, static_cast<std::size_t>(ulysim_report_page_end - ulysim_report_page_begin)};
}

}  // namespace ulysim::reports

#else

namespace ulysim::reports {

std::string_view report_page() {
  return {};
}

}  // namespace ulysim::reports

#endif

# The flags of our own targets, and the three functions by which modules, tests and programs are declared.

add_library(ulysim_flags INTERFACE)
target_include_directories(ulysim_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ulysim_flags INTERFACE
  # Results are the same bytes on every CPU: no contraction of a*b+c into one rounding.
  -ffp-contract=off
  # No absolute path in a program: __FILE__ and debug information count from the root of the sources.
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_compile_options(ulysim_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wdouble-promotion -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports std::string's own operator+ (GCC bug 105651).
  target_compile_options(ulysim_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A file's garbage is not worth collecting: a tenth of the time that compiling takes.
  target_compile_options(ulysim_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>)
endif()
if(ULYSIM_WERROR)
  target_compile_options(ulysim_flags INTERFACE -Werror)
endif()

# The standard library's headers cost half a second a file, GoogleTest's a whole one: compiled once, they take a third
# off a clean build. For developers only: what users build takes every file as it is, and shows an include that is
# missing.
if(ULYSIM_TESTS)
  # g++ 12 sees false overflows in std::string where its header came precompiled.
  set(ulysim_precompiled_options -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  add_library(ulysim_headers OBJECT ${CMAKE_SOURCE_DIR}/tools/cmake/headers.cpp)
  target_link_libraries(ulysim_headers PRIVATE ulysim_flags fmt::fmt)
  target_compile_options(ulysim_headers PRIVATE ${ulysim_precompiled_options})
  set(ulysim_standard_headers <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory>
    <optional> <set> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
  target_precompile_headers(ulysim_headers PRIVATE ${ulysim_standard_headers})
endif()

# ulysim_use_headers(TARGET FROM): compiles TARGET with the precompiled headers of FROM where there are such.
function(ulysim_use_headers target from)
  if(TARGET ${from})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ulysim_precompiled_options}>)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# ulysim_module(NAME SOURCES a.cpp… HEADERS a.h… [LINK targets…] [PRIVATE third-party…])
# A static library ulysim_NAME with alias ulysim::NAME; every header is compiled alone by the target
# all_verify_interface_header_sets. Third-party libraries under PRIVATE are for .cpp files only: a header that includes
# one does not compile alone, because its users do not get the library.
function(ulysim_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;LINK;PRIVATE" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ulysim_module(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  add_library(ulysim_${name} STATIC ${ARG_SOURCES})
  add_library(ulysim::${name} ALIAS ulysim_${name})
  set_target_properties(ulysim_${name} PROPERTIES LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(ulysim_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(ulysim_${name} PUBLIC ulysim_flags fmt::fmt ${ARG_LINK} PRIVATE ${ARG_PRIVATE})
  ulysim_use_headers(ulysim_${name} ulysim_headers)
endfunction()

# ulysim_program(NAME SOURCES a.cpp… [LINK targets…])
# A program in the top of the build folder, installed into bin/ when UlysimData.cmake names it.
function(ulysim_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ulysim_program(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ulysim_flags fmt::fmt ${ARG_LINK})
  ulysim_use_headers(${name} ulysim_headers)
endfunction()

# Code that runs once is not worth the optimiser's time.
set(ulysim_test_options -Og)

# ulysim_test(LABEL NAME SOURCES a.cpp… [LINK targets…] [ALONE])
# A GoogleTest program; each of its tests is a ctest named LABEL.Suite.Test with the label LABEL. The tests are listed
# when ctest runs, so that a program which dies at start is a failed test and not a failed build.
# ALONE: it measures times, and no other test runs beside it.
function(ulysim_test label name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;LINK" ${ARGN})
  set(labels unit property golden differential validation fuzz compile_fail architecture browser regression slow)
  if(NOT label IN_LIST labels)
    message(FATAL_ERROR "ulysim_test(${label} ${name}): the labels are ${labels}")
  endif()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ulysim_test(${label} ${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE ULYSIM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ulysim_flags fmt::fmt ${ARG_LINK} GTest::gmock GTest::gtest_main)
  set(timeout 300)
  if(label STREQUAL "slow")
    set(timeout 1800)
  endif()
  target_compile_options(${name} PRIVATE ${ulysim_test_options})
  ulysim_use_headers(${name} ulysim_test_headers)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${label}."
    PROPERTIES LABELS ${label} TIMEOUT ${timeout} RUN_SERIAL ${ARG_ALONE}
    # A strategy taken out of the catalogue fails its own tests only (tests/support/passes.h).
    SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]|this build has no pass '")
endfunction()
include(GoogleTest)

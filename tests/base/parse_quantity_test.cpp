#include "sim/base/parse_quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ulysim {
namespace {

/// One line of the grammar's table: what stands on the left reads as what stands on the right.
template <class V>
struct Row {
  std::string text{};
  V value{};
};

template <class T, class V>
void expect_reads(Parsed<T> (*parse)(std::string_view), const std::vector<Row<V>>& table) {
  for (const Row<V>& row : table) {
    const Parsed<T> parsed = parse(row.text);
    ASSERT_EQ(parsed.index(), 0U) << row.text << ": " << std::get<1>(parsed);
    EXPECT_EQ(std::get<0>(parsed), T(row.value)) << row.text;
  }
}

template <class T>
void expect_refuses(Parsed<T> (*parse)(std::string_view), const std::vector<Row<std::string>>& table) {
  for (const Row<std::string>& row : table) {
    const Parsed<T> parsed = parse(row.text);
    ASSERT_EQ(parsed.index(), 1U) << "'" << row.text << "' must be refused";
    EXPECT_EQ(std::get<1>(parsed), row.value);
  }
}

TEST(ParseBytes, ReadsEveryPrefix) {
  expect_reads<Bytes, std::int64_t>(parse_bytes, {{"0B", 0},
                                                  {"17B", 17},
                                                  {"1kB", 1'000},
                                                  {"512 MB", 512'000'000},
                                                  {"3GB", 3'000'000'000},
                                                  {"4TB", 4'000'000'000'000},
                                                  {"5PB", 5'000'000'000'000'000},
                                                  {"1KiB", 1'024},
                                                  {"2MiB", 2'097'152},
                                                  {"80GiB", 85'899'345'920},
                                                  {"1TiB", 1'099'511'627'776},
                                                  {"1PiB", 1'125'899'906'842'624}});
}

TEST(ParseBytes, ReadsDecimalsExponentsAndSeparators) {
  expect_reads<Bytes, std::int64_t>(parse_bytes, {{"1.5GiB", 1'610'612'736},
                                                  {"80.3GB", 80'300'000'000},  // in doubles this would be a hair off
                                                  {"1_048_576B", 1'048'576},
                                                  {"1e3kB", 1'000'000},
                                                  {"25E-1kB", 2'500},
                                                  {"0.3KiB", 307},  // 307.2 to the nearest byte
                                                  {"0.7KiB", 717},  // 716.8
                                                  {"0.5B", 1},
                                                  {"9223372036854775807B", std::numeric_limits<std::int64_t>::max()}});
}

TEST(ParseBytes, RefusesWithASentence) {
  expect_refuses<Bytes>(
      parse_bytes, {{"lots", "cannot read 'lots' as bytes (like 80GiB)"},
                    {"", "cannot read '' as bytes (like 80GiB)"},
                    {"80", "cannot read '80' as bytes (like 80GiB): a unit is needed"},
                    {"0", "cannot read '0' as bytes (like 80GiB): a unit is needed"},
                    {"80Gb", "cannot read '80Gb' as bytes (like 80GiB): unknown unit 'Gb'"},
                    {"80GIB", "cannot read '80GIB' as bytes (like 80GiB): unknown unit 'GIB'"},
                    {"80KB", "cannot read '80KB' as bytes (like 80GiB): unknown unit 'KB'"},
                    {"80GB/s", "cannot read '80GB/s' as bytes (like 80GiB): unknown unit 'GB/s'"},
                    {"80  GB", "cannot read '80  GB' as bytes (like 80GiB): unknown unit ' GB'"},
                    {"-1B", "cannot read '-1B' as bytes (like 80GiB)"},
                    {"+1B", "cannot read '+1B' as bytes (like 80GiB)"},
                    {" 1B", "cannot read ' 1B' as bytes (like 80GiB)"},
                    {"0x10B", "cannot read '0x10B' as bytes (like 80GiB): unknown unit 'x10B'"},
                    {"010B", "cannot read '010B' as bytes (like 80GiB)"},
                    {"infB", "cannot read 'infB' as bytes (like 80GiB)"},
                    {"1._5B", "cannot read '1._5B' as bytes (like 80GiB)"},
                    {"1__0B", "cannot read '1__0B' as bytes (like 80GiB): unknown unit '__0B'"},
                    {"1_B", "cannot read '1_B' as bytes (like 80GiB): unknown unit '_B'"},
                    {".5GB", "cannot read '.5GB' as bytes (like 80GiB)"},
                    {"5.GB", "cannot read '5.GB' as bytes (like 80GiB)"},
                    {"0.4B", "cannot read '0.4B' as bytes (like 80GiB): too small"},
                    {"9223372036854775808B", "cannot read '9223372036854775808B' as bytes (like 80GiB): too large"},
                    {"1e99999999999B", "cannot read '1e99999999999B' as bytes (like 80GiB): too large"},
                    {"1e-99999999999B", "cannot read '1e-99999999999B' as bytes (like 80GiB): too small"},
                    {"12345678901234567890123B",
                     "cannot read '12345678901234567890123B' as bytes (like 80GiB): more than 22 digits"}});
}

TEST(ParseBytes, ALongTextIsCutInTheMessage) {
  EXPECT_EQ(std::get<1>(parse_bytes(std::string(1000, 'x'))),
            "cannot read '" + std::string(60, 'x') + "…' as bytes (like 80GiB)");
}

TEST(ParseBandwidth, SmallBIsBitsAndLargeBIsBytes) {
  expect_reads<Bandwidth, double>(
      parse_bandwidth,
      {{"400Gb/s", 50e9}, {"450GB/s", 450e9}, {"3.35TB/s", 3.35e12}, {"1KiB/s", 1024.0}, {"8b/s", 1.0}, {"0B/s", 0.0}});
}

TEST(ParseBandwidth, RefusesWhatIsNoRate) {
  expect_refuses<Bandwidth>(
      parse_bandwidth, {{"400GB", "cannot read '400GB' as a bandwidth (like 450GB/s or 400Gb/s): unknown unit 'GB'"},
                        {"400", "cannot read '400' as a bandwidth (like 450GB/s or 400Gb/s): a unit is needed"},
                        {"1e400B/s", "cannot read '1e400B/s' as a bandwidth (like 450GB/s or 400Gb/s): out of range"}});
}

TEST(ParseFlopRate, TakesDecimalPrefixesOnly) {
  expect_reads<FlopRate, double>(parse_flop_rate, {{"989TFLOP/s", 989e12}, {"2.5 PFLOP/s", 2.5e15}});
  expect_refuses<FlopRate>(
      parse_flop_rate,
      {{"989TiFLOP/s", "cannot read '989TiFLOP/s' as a FLOP rate (like 989TFLOP/s): unknown unit 'TiFLOP/s'"},
       {"989TFLOPS", "cannot read '989TFLOPS' as a FLOP rate (like 989TFLOP/s): unknown unit 'TFLOPS'"}});
}

TEST(ParseDuration, ReadsEveryUnitToThePicosecond) {
  expect_reads<Duration, std::int64_t>(parse_duration, {{"3ps", 3},
                                                        {"3ns", 3'000},
                                                        {"1.2us", 1'200'000},
                                                        {"5ms", 5'000'000'000},
                                                        {"2s", 2'000'000'000'000},
                                                        {"1min", 60'000'000'000'000},
                                                        {"1.5h", 5'400'000'000'000'000}});
  expect_refuses<Duration>(parse_duration,
                           {{"0.1ps", "cannot read '0.1ps' as a duration (like 1.2us): too small"},
                            {"3000h", "cannot read '3000h' as a duration (like 1.2us): too large"},  // 125 days
                            {"5m", "cannot read '5m' as a duration (like 1.2us): unknown unit 'm'"}});
}

TEST(ParseCount, ReadsPlainNumbersAndSuffixes) {
  expect_reads<std::int64_t, std::int64_t>(parse_count, {{"0", 0},
                                                         {"1048576", 1'048'576},
                                                         {"1_048_576", 1'048'576},
                                                         {"1M", 1'000'000},
                                                         {"1Mi", 1'048'576},
                                                         {"1.5k", 1'500},
                                                         {"10G", 10'000'000'000},
                                                         {"9223372036854775807", 9'223'372'036'854'775'807}});
}

TEST(ParseCount, RefusesFractionsOverflowAndForeignForms) {
  expect_refuses<std::int64_t>(
      parse_count,
      {{"lots", "cannot read 'lots' as a count (like 1048576 or 1Mi)"},
       {"1.0001k", "cannot read '1.0001k' as a count (like 1048576 or 1Mi): not a whole number"},
       {"9223372036854775808", "cannot read '9223372036854775808' as a count (like 1048576 or 1Mi): too large"},
       {"-1", "cannot read '-1' as a count (like 1048576 or 1Mi)"},
       {"1 M", "cannot read '1 M' as a count (like 1048576 or 1Mi)"},
       {"017", "cannot read '017' as a count (like 1048576 or 1Mi)"},
       {"0o17", "cannot read '0o17' as a count (like 1048576 or 1Mi)"},
       {"1P", "cannot read '1P' as a count (like 1048576 or 1Mi)"}});
}

TEST(ParseNumber, ReadsPlainDecimalsOnly) {
  expect_reads<double, double>(parse_number,
                               {{"0.85", 0.85}, {"-2", -2.0}, {"+1e-3", 0.001}, {"0", 0.0}, {"1e308", 1e308}});
  expect_refuses<double>(parse_number, {{"inf", "cannot read 'inf' as a number (like 0.85)"},
                                        {"nan", "cannot read 'nan' as a number (like 0.85)"},
                                        {"1e309", "cannot read '1e309' as a number (like 0.85): out of range"},
                                        {"--1", "cannot read '--1' as a number (like 0.85)"},
                                        {"0x1p3", "cannot read '0x1p3' as a number (like 0.85)"},
                                        {"1_0", "cannot read '1_0' as a number (like 0.85)"},
                                        {"1,5", "cannot read '1,5' as a number (like 0.85)"}});
}

}  // namespace
}  // namespace ulysim

// What does a mistake in a catalogue file look like to the one who made it? Whole messages, with file:line:column.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "hw_models/spec/load.h"

namespace ulysim::spec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Refused : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("ulysim_refused_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "gpus");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Messages of loading GPU x from five lines of which `line` replaces the one with the same key; the folder is cut.
  std::vector<std::string> with(const std::string& line) {
    const std::string key = line.substr(0, line.find(':') + 1);
    std::vector<std::string> lines{"summary: x", "memory: {value: 80GiB, source: s, kind: datasheet}",
                                   "memory_bandwidth: {value: 3TB/s, source: s, kind: datasheet}",
                                   "sms: {value: 132, source: s, kind: datasheet}",
                                   "bf16: {value: 989TFLOP/s, source: s, kind: datasheet}"};
    bool replaced = false;
    for (std::string& old : lines) {
      if (old.starts_with(key)) {
        old = line;
        replaced = true;
      }
    }
    if (!replaced) {
      lines.push_back(line);
    }
    std::ofstream file(folder_ / "gpus/x.yaml");
    for (const std::string& each : lines) {
      file << each << "\n";
    }
    file.close();
    return messages([&] { std::ignore = Catalog(folder_).load_gpu("x"); });
  }

  std::vector<std::string> messages(const std::function<void()>& load) {
    std::vector<std::string> out;
    try {
      load();
    } catch (const InputError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics()) {
        std::string text = to_string(diagnostic);
        if (const auto at = text.find(folder_.string()); at != std::string::npos) {
          text.erase(at, folder_.string().size() + 1);
        }
        out.push_back(text);
      }
    }
    return out;
  }
  std::filesystem::path folder_{};
};

TEST_F(Refused, NothingWhenAllIsWell) {
  EXPECT_THAT(with("kernel_profile: h100-sxm"), SizeIs(0));
}

TEST_F(Refused, ABareNumber) {
  EXPECT_THAT(with("sms: 132"), ElementsAre("gpus/x.yaml:4:6: error: 'sms': a bare value has no source; write {value: "
                                            "…, source: \"…\", kind: …}"));
}

TEST_F(Refused, NoSourceAndNoKind) {
  EXPECT_THAT(with("sms: {value: 132}"),
              ElementsAre(HasSubstr("gpus/x.yaml:4:6: error: missing key 'sms.source'"),
                          "gpus/x.yaml:4:6: error: missing key 'sms.kind': datasheet, published, measured or assumed"));
}

TEST_F(Refused, AnEmptySource) {
  EXPECT_THAT(with("sms: {value: 132, source: \" \", kind: measured}"), ElementsAre(HasSubstr("needs a source")));
}

TEST_F(Refused, AKindThatIsNone) {
  EXPECT_THAT(with("sms: {value: 132, source: s, kind: measurd}"),
              ElementsAre(testing::AllOf(HasSubstr("gpus/x.yaml:4:36: error:"), HasSubstr("did you mean 'measured'"))));
}

TEST_F(Refused, AWrongUnit) {
  EXPECT_THAT(with("memory_bandwidth: {value: 3TB, source: s, kind: datasheet}"),
              ElementsAre(HasSubstr("gpus/x.yaml:3:27: error: 'memory_bandwidth.value'")));
}

TEST_F(Refused, AbsurdNumbers) {
  EXPECT_THAT(with("sms: {value: 0, source: s, kind: assumed}"),
              ElementsAre("gpus/x.yaml:4:14: error: 'sms.value': 0 is outside 1 … 4096"));
  EXPECT_THAT(with("memory: {value: 80MiB, source: s, kind: assumed}"),
              ElementsAre("gpus/x.yaml:2:17: error: 'memory.value': 80MiB is outside 1GiB … 4TiB"));
  EXPECT_THAT(with("bf16: {value: 989PFLOP/s, source: s, kind: assumed, spread: -1}"),
              ElementsAre(HasSubstr("'bf16.spread'")));
  EXPECT_THAT(with("bf16: {value: 2000PFLOP/s, source: s, kind: assumed}"), ElementsAre(HasSubstr("'bf16.value'")));
}

TEST_F(Refused, UnknownKeys) {
  EXPECT_THAT(with("memori: {value: 80GiB, source: s, kind: datasheet}"),
              ElementsAre(testing::AllOf(HasSubstr("gpus/x.yaml:6:1: error: unknown key 'memori'"),
                                         HasSubstr("did you mean 'memory'"))));
  EXPECT_THAT(with("sms: {value: 132, source: s, kind: measured, sprad: 0.1}"),
              ElementsAre(testing::AllOf(HasSubstr("'sms.sprad'"), HasSubstr("did you mean 'spread'"))));
}

TEST_F(Refused, AllMistakesOfAFileAtOnce) {
  std::ofstream(folder_ / "gpus/x.yaml") << "memory: 80GiB\nsms: 132\n";
  // Two bare values; summary, memory_bandwidth and bf16 missing.
  EXPECT_THAT(messages([&] { std::ignore = Catalog(folder_).load_gpu("x"); }), SizeIs(5));
}

TEST_F(Refused, AnUnknownNameAtThePlaceThatAsks) {
  std::ofstream(folder_ / "gpus/h100-sxm.yaml") << "summary: x\n";
  const Location where{.file = "scenario.yaml", .line = 3, .column = 9};
  EXPECT_THAT(messages([&] { std::ignore = Catalog(folder_).load_gpu("h100-smx", where); }),
              ElementsAre("scenario.yaml:3:9: error: unknown GPU 'h100-smx'; did you mean 'h100-sxm'?"));
}

TEST_F(Refused, NamesThatLeaveTheFolder) {
  std::ofstream(folder_ / "outside.yaml") << "summary: x\n";
  const std::vector<std::string> evil{"../outside",
                                      "..",
                                      ".",
                                      "",
                                      "gpus/x",
                                      "a\\b",
                                      "/etc/passwd",
                                      ".hidden",
                                      std::string("x\0y", 3),
                                      "x y",
                                      "x\n",
                                      std::string(500, 'a')};
  for (const std::string& name : evil) {
    EXPECT_THAT(messages([&] { std::ignore = Catalog(folder_).load_gpu(name); }),
                ElementsAre(HasSubstr("is no name of a GPU")))
        << name;
  }
}

/// A shipped node with one line changed, beside the shipped GPUs.
class RefusedNode : public Refused {
 protected:
  std::vector<std::string> with_node(const std::string& from, const std::string& to,
                                     const std::string& name = "dgx-h100") {
    const std::filesystem::path shipped = std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models/catalog";
    std::filesystem::remove_all(folder_ / "gpus");
    std::filesystem::copy(shipped / "gpus", folder_ / "gpus", std::filesystem::copy_options::recursive);
    std::filesystem::create_directories(folder_ / "nodes");
    std::ifstream in(shipped / "nodes" / (name + ".yaml"));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(folder_ / "nodes/x.yaml") << text;
    return messages([&] { std::ignore = Catalog(folder_).load_node("x"); });
  }
};

TEST_F(RefusedNode, AnEfficiencyOverWhatALinkCanDo) {
  EXPECT_THAT(with_node("ring_efficiency: {value: 0.778", "ring_efficiency: {value: 1.3"),
              ElementsAre(HasSubstr("'nvlink.ring_efficiency.value': 1.3 is outside 0.001 … 1.2")));
}

TEST_F(RefusedNode, AGpuThatIsNotThere) {
  EXPECT_THAT(with_node("gpu: h100-sxm", "gpu: h100-sxn"),
              ElementsAre(HasSubstr("x.yaml:2:6: error: unknown GPU 'h100-sxn'; did you mean 'h100-sxm'?")));
}

TEST_F(RefusedNode, NicsThatDoNotDivide) {
  EXPECT_THAT(with_node("nics: {value: 8", "nics: {value: 6"),
              ElementsAre(HasSubstr("6 NICs and 8 GPUs: one must divide the other")));
}

TEST_F(RefusedNode, UplinksThatDoNotDivide) {
  EXPECT_THAT(with_node("gpus_per_pcie_uplink: {value: 1", "gpus_per_pcie_uplink: {value: 3"),
              ElementsAre(HasSubstr("3 does not divide the 8 GPUs")));
}

TEST_F(RefusedNode, NoMemoryLeftForTensors) {
  EXPECT_THAT(with_node("host_memory: {value: 2TiB", "host_memory: {value: 64GiB"),
              ElementsAre(HasSubstr("leaves nothing of 64GiB")));
}

TEST_F(RefusedNode, AFabricThatIsNone) {
  EXPECT_THAT(with_node("fabric: pcie", "fabric: pcei", "pcie-l40s-8"),
              testing::Contains(HasSubstr("did you mean 'pcie'")));
}

TEST_F(RefusedNode, AnNvlinkWhereThereIsNone) {
  EXPECT_THAT(with_node("fabric: pcie", "fabric: pcie\nnvlink_bandwidth: {value: 1GB/s, source: s, kind: assumed}",
                        "pcie-l40s-8"),
              ElementsAre(HasSubstr("unknown key 'nvlink_bandwidth'")));
}

TEST_F(RefusedNode, SwitchesThatDoNotSpreadOverTheSockets) {
  EXPECT_THAT(with_node("sockets: {value: 2", "sockets: {value: 3", "pcie-l40s-8"),
              ElementsAre(HasSubstr("4 PCIe switches over 3 sockets: a GPU's socket is not known")));
  EXPECT_THAT(with_node("sockets: {value: 2", "sockets: {value: 3"), SizeIs(0)) << "NVSwitch: sockets carry no peers";
}

TEST_F(RefusedNode, PairsOfAnOddNumber) {
  EXPECT_THAT(with_node("fabric: pcie",
                        "fabric: nvlink-pairs\n"
                        "nvlink_bandwidth: {value: 200GB/s, source: s, kind: assumed}",
                        "gh200"),
              testing::Contains(HasSubstr("missing key 'nvlink'")));
  EXPECT_THAT(with_node("gpus: {value: 8", "gpus: {value: 1", "pcie-a100-8"),
              testing::Contains(HasSubstr("1 GPUs make no pairs")));
}

TEST_F(RefusedNode, HostsThatDoNotDivide) {
  EXPECT_THAT(with_node("hosts: {value: 18", "hosts: {value: 5", "gb200-nvl72"),
              ElementsAre(HasSubstr("5 hosts do not divide the 72 GPUs")));
}

/// A shipped framework with one line changed.
class RefusedFramework : public Refused {
 protected:
  std::vector<std::string> with_framework(const std::string& name, const std::string& from, const std::string& to) {
    std::filesystem::create_directories(folder_ / "frameworks");
    std::ifstream in(std::filesystem::path(ULYSIM_SOURCE_DIR) / "hw_models/catalog/frameworks" / (name + ".yaml"));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(folder_ / "frameworks/x.yaml") << text;
    return messages([&] { std::ignore = Catalog(folder_).load_framework("x"); });
  }
};

TEST_F(RefusedFramework, TilesOfTokensWithoutACount) {
  EXPECT_THAT(with_framework("trl-fsdp2", "loss_tiling: {value: tokens", "loss_tiling: {value: hidden"),
              ElementsAre(HasSubstr("loss_tile_tokens goes with loss_tiling tokens, and only with it")));
}

TEST_F(RefusedFramework, ANumberOfTilesWithoutItsRule) {
  EXPECT_THAT(with_framework("torchtitan", "loss_tiling: {value: count", "loss_tiling: {value: hidden"),
              ElementsAre(HasSubstr("loss_tiles goes with loss_tiling count, and only with it")));
}

TEST_F(RefusedFramework, AWordThatIsNone) {
  EXPECT_THAT(with_framework("torchtitan", "{value: every-second-gemm", "{value: every-second-gem"),
              ElementsAre(HasSubstr("did you mean 'every-second-gemm'")));
}

TEST_F(RefusedFramework, AProfileThatExtendsNothingThatStandsAlone) {
  std::filesystem::create_directories(folder_ / "frameworks");
  const auto extending = [&](const char* name, const std::string& other) {
    std::ofstream(folder_ / "frameworks" / (std::string(name) + ".yaml")) << "summary: s\nextends: " << other << "\n";
    return messages([&] { std::ignore = Catalog(folder_).load_framework(name); });
  };
  EXPECT_THAT(extending("a", "b"), ElementsAre(AllOf(HasSubstr("a.yaml:2:10"), HasSubstr("unknown framework 'b'"))));
  EXPECT_THAT(extending("b", "a"),
              ElementsAre(AllOf(HasSubstr("b.yaml:2:10"), HasSubstr("'a' extends another itself"))));
}

TEST_F(RefusedFramework, AMissingFactThatHasNoDefault) {
  EXPECT_THAT(with_framework("nemo", "\nnorm_forward:", "\n# norm_forward:"),
              ElementsAre(HasSubstr("missing key 'norm_forward'")));
}

}  // namespace
}  // namespace ulysim::spec

// Which question this answers: what does a topology file tell of a node, and where does it only seem to tell?

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/calibration_import/importing.h"

namespace ulysim::calibration {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// `cell(i, j)` of `gpus` GPUs, half of them on each of two NUMA nodes.
template <class Cell>
std::string matrix(int gpus, Cell cell) {
  std::string text;
  for (int i = 0; i < gpus; ++i) {
    text += fmt::format("\tGPU{}", i);
  }
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (int i = 0; i < gpus; ++i) {
    text += fmt::format("GPU{}", i);
    for (int j = 0; j < gpus; ++j) {
      text += i == j ? std::string("\t X ") : fmt::format("\t{}", cell(i, j));
    }
    text += fmt::format("\t0-23\t{}\n", i * 2 / gpus);
  }
  return text + "\nLegend:\n\n  X    = Self\n";
}

// DGX A100: 12 links to each of 7 others are more than a GPU has, so they end in switches.
TEST(TopoMatrix, AsManyLinksToAllOthersAreASwitch) {
  const Machine machine = *import_text(matrix(8, [](int, int) { return "NV12"; }), "f", {}).machine;
  EXPECT_EQ(machine.fabric, "nvswitch");
  EXPECT_EQ(machine.nvlinks_per_gpu, 12);
  EXPECT_EQ(machine.gpus.size(), 8U);
  EXPECT_EQ(machine.sockets, 2);
}

// Four V100 with 2 links to each of 3 others: 6 links, all that a V100 has.
TEST(TopoMatrix, FewLinksToAllOthersAreAMesh) {
  const Machine machine = *import_text(matrix(4, [](int, int) { return "NV2"; }), "f", {}).machine;
  EXPECT_EQ(machine.fabric, "nvlink-mesh");
  EXPECT_EQ(machine.nvlinks_per_gpu, 6);
}

TEST(TopoMatrix, BridgesJoinPairs) {
  const auto cell = [](int i, int j) { return i / 2 == j / 2 ? "NV12" : i / 4 == j / 4 ? "NODE" : "SYS"; };
  const Machine machine = *import_text(matrix(8, cell), "f", {}).machine;
  EXPECT_EQ(machine.fabric, "nvlink-pairs");
  EXPECT_EQ(machine.nvlinks_per_gpu, 12);
}

// Found by the fuzzer: our JSON was no UTF-8, and could not be read again.
TEST(TopoMatrix, ANameThatIsNoUtf8DoesNotSpoilTheJson) {
  const std::string text =
      "\tGPU0\tmlx5_\x81\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-23\t0\nmlx5_\x81\tPIX\t X \n\nLegend:\n";
  const std::array<ImportedFile, 1> files{import_text(text, "f", {})};
  EXPECT_THAT(to_json(files), HasSubstr("mlx5_\xEF\xBF\xBD"));
}

// `topo -mp` hides NVLink: no links seen is no proof.
TEST(TopoMatrix, WithoutLinksTheFabricStaysOpen) {
  const ImportedFile file = import_text(matrix(2, [](int, int) { return "PHB"; }), "f", {});
  EXPECT_FALSE(file.machine->fabric.has_value());
  EXPECT_THAT(file.notes, Contains(HasSubstr("topo -mp")));
}

TEST(TopoMatrix, NicsAreColumnsAndStandNearGpus) {
  const ImportedFile file = import_text(
      "\tGPU0\tGPU1\tNIC0\tmlx5_1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV18\tPIX\tSYS\t0-47\t0\tN/A\n",
      "f", {});
  ASSERT_EQ(file.machine->nics.size(), 2U);
  EXPECT_THAT(file.machine->nics[0].near_gpus, ElementsAre(0));
  EXPECT_THAT(file.machine->nics[1].near_gpus, ElementsAre());
  EXPECT_EQ(file.machine->gpus.size(), 2U);
  EXPECT_THAT(file.notes, Contains(HasSubstr("rows of 1 of 2 GPUs")));
  EXPECT_FALSE(file.machine->fabric.has_value()) << "half a matrix";
}

TEST(TopoMatrix, WhatContradictsItselfIsRefusedByItsLine) {
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tSYS\t X \n"), HasSubstr("f:2:1: error: GPU0 and GPU1 say"));
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\t X \tNV999\nGPU1\tSYS\t X \n"),
              HasSubstr("f:2:1: error: cannot read 'NV999'"));
  EXPECT_THAT(refusal("\tGPU0\tGPU1\nGPU0\t X \nGPU1\tSYS\t X \n"), HasSubstr("f:2:1: error: 1 cells under 2 columns"));
  EXPECT_THAT(refusal("\tGPU0\tGPU1\n"), HasSubstr("without rows"));
}

std::string bridge(const std::string& inside) {
  return R"(<pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">)" + inside + "</pci>\n";
}
std::string gpu(const std::string& bus, const std::string& links) {
  return R"(<pci busid=")" + bus + R"(" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">)" +
         (links.empty() ? "" : R"(<gpu dev="0" sm="90">)" + links + "</gpu>") + "</pci>\n";
}
std::string system(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + inside + "</cpu>\n</system>\n";
}

// H200: 5 + 5 + 4 + 4 = 18 links of 25 GB/s a direction; NDR is 400000 Mb/s.
TEST(TopoXml, LinksToSwitchesAreSummed) {
  const ImportedFile file = import_text(
      system(
          bridge(gpu("0000:18:00.0", R"(<nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
<nvlink target="0000:06:00.0" count="5" tclass="0x068000"/><nvlink target="0000:05:00.0" count="4" tclass="0x068000"/>
<nvlink target="0000:08:00.0" count="4" tclass="0x068000"/>)") +
                 R"(<pci busid="0000:19:00.0" class="0x020000"><nic><net name="mlx5_0" speed="400000"/></nic></pci>)")),
      "f", {});
  const Machine& machine = *file.machine;
  EXPECT_EQ(machine.fabric, "nvswitch");
  EXPECT_EQ(machine.nvlinks_per_gpu, 18);
  EXPECT_EQ(machine.nvlink_gb_s, 450.0);
  EXPECT_EQ(machine.pcie_gt_s, 32.0);
  EXPECT_EQ(machine.pcie_width, 16);
  EXPECT_EQ(machine.gpus_per_pcie_uplink, 1);
  ASSERT_EQ(machine.nics.size(), 1U);
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  EXPECT_EQ(machine.nics[0].gbit_s, 400.0);
  EXPECT_THAT(machine.nics[0].near_gpus, ElementsAre(0));
}

// Clouds describe PCIe alone: two GPUs and an adapter under each switch, nothing of NVLink.
TEST(TopoXml, ACloudsFileLeavesTheFabricOpen) {
  const std::string nic = R"(<pci busid="0101:00:00.0" class="0x020700"/>)";
  const ImportedFile file = import_text(
      system(bridge(gpu("0001:00:00.0", "") + gpu("0002:00:00.0", "") + nic) + bridge(gpu("0003:00:00.0", "") + nic)),
      "f", {});
  EXPECT_EQ(file.machine->gpus.size(), 3U);
  EXPECT_EQ(file.machine->nics.size(), 2U);
  EXPECT_EQ(file.machine->gpus_per_pcie_uplink, 2);
  EXPECT_FALSE(file.machine->fabric.has_value());
  EXPECT_THAT(file.notes, Contains(HasSubstr("PCIe alone")));
}

// Azure NC A100 v4: twelve links whose other end is the GPU itself, an empty link speed.
TEST(TopoXml, ALinkToItselfIsNoFabric) {
  const ImportedFile file =
      import_text(system(R"(<pci busid="1" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="80">)"
                         R"(<nvlink target="1" count="12" tclass="0x030200"/></gpu></pci>)"),
                  "f", {});
  EXPECT_FALSE(file.machine->fabric.has_value());
  EXPECT_FALSE(file.machine->nvlinks_per_gpu.has_value());
  EXPECT_FALSE(file.machine->pcie_gt_s.has_value());
  EXPECT_THAT(file.notes, Contains(HasSubstr("NVLinks to themselves")));
}

TEST(TopoXml, DirectLinksMakePairsAndDevicesWithoutAClassAreOnlyCounted) {
  const auto linked = [](const std::string& from, const std::string& to) {
    return gpu(from, R"(<nvlink target=")" + to + R"(" count="12" tclass="0x030200"/>)");
  };
  EXPECT_EQ(import_text(system(linked("a", "b") + linked("b", "a")), "f", {}).machine->fabric, "nvlink-pairs");
  const ImportedFile bare = import_text(system(R"(<pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/>)"), "f", {});
  EXPECT_TRUE(bare.machine->gpus.empty());
  EXPECT_THAT(bare.notes, ElementsAre(HasSubstr("2 devices without a class")));
}

TEST(TopoXml, WhatIsNotWellFormedIsRefusedByItsLine) {
  EXPECT_THAT(refusal("<system>\n<cpu>\n</system>"),
              HasSubstr("f:3:1: error: no well-formed XML: Start-end tags mismatch"));
  EXPECT_THAT(refusal("<system>\n<cpu a=1/>"),
              HasSubstr("f:2:1: error: no well-formed XML: Error parsing element attribute"));
  EXPECT_THAT(refusal("<system>\n<cpu a='1' a='2'/></system>"), HasSubstr("f:2:1: error: attribute 'a' stands twice"));
  EXPECT_THAT(refusal("<system>"), HasSubstr("no well-formed XML"));
  EXPECT_THAT(refusal("<!DOCTYPE x [<!ENTITY a \"b\">]><system/>"), HasSubstr("doctypes"));
  EXPECT_THAT(refusal("<html/>"), HasSubstr("<html> is no NCCL topology"));
  EXPECT_THAT(refusal("<system/>"), HasSubstr("no GPU, no network adapter"));
  std::string deep = "<system>";
  std::string ends = "</system>";
  for (int i = 0; i < 100; ++i) {
    deep += "<pci>";
    ends.insert(0, "</pci>");
  }
  EXPECT_THAT(refusal(deep + ends), HasSubstr("too many or too deep"));
}

TEST(TopologyXml, EntitiesAndCommentsAreUnderstood) {
  const ImportedFile file = import_text(
      "<?xml version='1.0'?><!-- <a> -->\n<system><cpu numaid=\"0\"><nic><net name=\"mlx5_0&amp;&lt;1&gt;\" "
      "speed=\"400000\"/></nic></cpu></system>",
      "f", {});
  ASSERT_EQ(file.machine->nics.size(), 1U);
  EXPECT_EQ(file.machine->nics[0].name, "mlx5_0&<1>");
}

}  // namespace
}  // namespace ulysim::calibration

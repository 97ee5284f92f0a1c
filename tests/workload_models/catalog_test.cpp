// Every model under scenarios/models has the size and the Ulysses degrees that are published for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "sim/workload/hf_config.h"
#include "sim/workload/transformer.h"

namespace ulysim::workload {
namespace {

using Degrees = std::vector<std::int64_t>;

const Degrees kTo32{1, 2, 4, 8, 16, 32};
const Degrees kTo64{1, 2, 4, 8, 16, 32, 64};
const Degrees kTo128{1, 2, 4, 8, 16, 32, 64, 128};
// 40 query heads over 8 key/value heads: 5 and 10 divide 40 but neither divide 8 nor are multiples of it.
const Degrees kForty{1, 2, 4, 8, 40};

struct Published {
  std::string name;
  std::int64_t parameters;
  Degrees degrees;
};

std::ostream& operator<<(std::ostream& out, const Published& published) {
  return out << published.name;
}

// Parameters: safetensors metadata and model cards on huggingface.co, text decoder only; degrees by DeepSpeed's
// rule from the published heads and key/value heads.
const std::vector<Published> kPublished{
    {"llama-3.1-8b", 8030261248, kTo32},
    {"llama-3.1-70b", 70553706496, kTo64},
    {"llama-3.1-405b", 405853388800, kTo128},
    {"llama-3.1-405b-kv16-original-release", 410081247232, kTo128},
    // Cut for measurements on one node (SimuMax): 12 of 80 layers, 2·128256·8192 + 8192 + 12·(2·8192² + 2·8192·1024 +
    // 3·8192·28672 + 2·8192); and 4 of 126, likewise with h 16384, 16 key/value heads of 128 and ffn 53248.
    {"llama-3.1-70b-12-layers", 12369207296, kTo64},
    {"llama-3.1-405b-kv16-4-layers", 17087741952, kTo128},
    {"llama-2-7b", 6738415616, kTo32},
    {"llama-2-13b", 13015864320, {1, 2, 4, 5, 8, 10, 20, 40}},
    {"qwen2.5-7b", 7615616512, {1, 2, 4, 28}},
    {"qwen2.5-14b", 14770033664, kForty},
    {"qwen2.5-32b", 32763876352, kForty},
    {"qwen2.5-72b", 72706203648, kTo64},
    {"qwen3-8b", 8190735360, kTo32},
    {"qwen3-32b", 32762123264, kTo64},
    {"qwen3-4b", 4022468096, kTo32},
    {"qwen3-0.6b", 596049920, {1, 2, 4, 8, 16}},
    {"qwen3-30b-a3b", 30532122624, kTo32},
    {"mistral-7b-v0.1", 7241732096, kTo32},
    {"mixtral-8x7b", 46702792704, kTo32},
    {"gemma-2-9b", 9241705984, {1, 2, 4, 8, 16}},
    {"gemma-3-4b-nested-no-heads", 3880263168, {1, 2, 4, 8}},
    {"phi-3-mini-4k", 3821079552, kTo32},
    {"gpt2", 124439808, {1, 2, 3, 4, 6, 12}},
    {"gpt-neox-20b", 20554567680, kTo64},
    // No card: the 7B of DeepSpeed-Ulysses (arXiv 2309.14509) is L 32, h 4096, V 50257, head tied, with biases:
    // 32·(12·4096² + 13·4096) + 50257·4096 + 2·4096.
    {"gpt-7b", 6650015744, kTo32},
    {"mpt-7b", 6649286656, kTo32},
    {"falcon-7b", 6921720704, {1, 71}},
    {"deepseek-v3", 671026419200, kTo128},
    // Cut likewise (SimuMax), one dense layer and three with experts: 2·129280·7168 + 7168 + 4·(187107328 of latent
    // attention + 2·7168) + 3·7168·18432 + 3·(257·3·7168·2048 + 256·7168 + 256); DeepSeek-V2 with h 5120, 160 experts
    // of 1536, two shared.
    {"deepseek-v3-4-layers", 36958707456, kTo128},
    {"deepseek-v2-4-layers", 13302912480, kTo128},
    {"gpt-oss-120b", 116829156672, kTo64},
    {"llama-4-scout-nested", 107769861120, kForty},
};

std::filesystem::path models() {
  return std::filesystem::path(ULYSIM_SOURCE_DIR) / "scenarios" / "models";
}

class CatalogTest : public testing::TestWithParam<Published> {};

TEST_P(CatalogTest, has_the_published_number_of_parameters) {
  const Transformer t = load_hf_config(models() / GetParam().name);
  EXPECT_EQ(t.name, GetParam().name);
  EXPECT_EQ(count_parameters(t).total, GetParam().parameters);
}

TEST_P(CatalogTest, takes_the_ulysses_degrees_that_its_heads_allow) {
  EXPECT_EQ(ulysses_degrees(load_hf_config(models() / GetParam().name)), GetParam().degrees);
}

TEST_P(CatalogTest, describes_every_layer) {
  const Transformer t = load_hf_config(models() / GetParam().name);
  EXPECT_EQ(static_cast<std::int64_t>(t.layer_specs.size()), t.layers);
  std::int64_t sum = 0;
  for (std::size_t layer = 0; layer < t.layer_specs.size(); ++layer) {
    sum += layer_parameters(t, layer).total();
  }
  EXPECT_EQ(sum, count_parameters(t).layers);
}

INSTANTIATE_TEST_SUITE_P(Models, CatalogTest, testing::ValuesIn(kPublished), [](const auto& each) {
  std::string name = each.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(Catalog, holds_no_model_without_a_published_size) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(models())) {
    if (entry.is_directory()) {
      folders.push_back(entry.path().filename().string());
    }
  }
  std::vector<std::string> expected;
  for (const Published& published : kPublished) {
    expected.push_back(published.name);
  }
  EXPECT_THAT(folders, testing::UnorderedElementsAreArray(expected));
}

// What one token passes through, as the model cards round it.
TEST(Catalog, mixtures_of_experts_activate_a_part_of_their_parameters) {
  const auto active = [](const char* name) { return count_parameters(load_hf_config(models() / name)).active; };
  EXPECT_NEAR(static_cast<double>(active("mixtral-8x7b")), 12.9e9, 0.05e9);       // arXiv 2401.04088: 13B
  EXPECT_NEAR(static_cast<double>(active("qwen3-30b-a3b")), 3.3e9, 0.06e9);       // model card: 3.3B
  EXPECT_NEAR(static_cast<double>(active("llama-4-scout-nested")), 17e9, 0.3e9);  // model card: 17B
  const Transformer dense = load_hf_config(models() / "llama-3.1-8b");
  EXPECT_EQ(count_parameters(dense).active, count_parameters(dense).total);
}

TEST(Catalog, attention_patterns_follow_the_model_class) {
  const auto layers = [](const char* name) { return load_hf_config(models() / name).layer_specs; };
  const auto windowed = [](const std::vector<LayerSpec>& specs) {
    return std::count_if(specs.begin(), specs.end(), [](const LayerSpec& s) { return s.sliding_window.has_value(); });
  };
  EXPECT_EQ(windowed(layers("mistral-7b-v0.1")), 32);
  EXPECT_EQ(layers("mistral-7b-v0.1")[31].sliding_window, 4096);
  EXPECT_EQ(windowed(layers("qwen2.5-7b")), 0) << "a window is listed, but switched off";
  EXPECT_EQ(windowed(layers("mixtral-8x7b")), 0) << "the window is null";
  EXPECT_EQ(windowed(layers("gpt-oss-120b")), 18) << "sliding and full alternate";
  EXPECT_EQ(layers("gpt-oss-120b")[0].sliding_window, 128);
  EXPECT_EQ(windowed(layers("gemma-2-9b")), 21);
  // 34 layers, every sixth is full: 6, 12, 18, 24, 30.
  EXPECT_EQ(windowed(layers("gemma-3-4b-nested-no-heads")), 29);
  const std::vector<LayerSpec> scout = layers("llama-4-scout-nested");
  EXPECT_EQ(scout[2].chunk, 8192);
  EXPECT_EQ(scout[3].chunk, std::nullopt) << "every fourth layer has no rotary positions and sees everything";
  const std::vector<LayerSpec> deepseek = layers("deepseek-v3");
  EXPECT_FALSE(deepseek[2].moe);
  EXPECT_TRUE(deepseek[3].moe);
}

}  // namespace
}  // namespace ulysim::workload

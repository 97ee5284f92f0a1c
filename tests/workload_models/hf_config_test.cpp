// The reader of Hugging Face configurations: defaults, synonyms, nesting, and what it says about mistakes.

#include "sim/workload/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/workload/transformer.h"

namespace ulysim::workload {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A model of two layers; `more` adds further keys.
std::string llama(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
 "intermediate_size": 16, "vocab_size": 10)" +
         more + "}";
}

std::vector<std::string> mistakes(const std::string& json) {
  Diagnostics diagnostics;
  [[maybe_unused]] const Transformer t = read_hf_config(config::parse_json(json, "config.json"), "m", diagnostics);
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    messages.push_back(to_string(diagnostic));
  }
  return messages;
}

Transformer model(const std::string& json) {
  Diagnostics diagnostics;
  Transformer t = read_hf_config(config::parse_json(json, "config.json"), "m", diagnostics);
  diagnostics.throw_if_any();
  return t;
}

TEST(HfConfig, a_llama_of_two_layers_by_hand) {
  const Transformer t = model(llama(R"(, "num_key_value_heads": 2)"));
  const LayerParameters layer = layer_parameters(t, 0);
  EXPECT_EQ(layer.attention, 8 * 8 + 2 * (8 * 4) + 8 * 8);  // Q, K and V of 2 heads of 2, O
  EXPECT_EQ(layer.dense_mlp, 3 * 8 * 16);
  EXPECT_EQ(layer.norms, 2 * 8);
  const ParameterCount count = count_parameters(t);
  EXPECT_EQ(count.embedding, 80);
  EXPECT_EQ(count.head, 80);
  EXPECT_EQ(count.final_norm, 8);
  EXPECT_EQ(count.total, 80 + 2 * (192 + 384 + 16) + 8 + 80);
}

TEST(HfConfig, mpt_widens_by_its_ratio_and_learns_positions_only_without_alibi_or_rotation) {
  const auto mpt = [](const std::string& more, const std::string& attention) {
    return model(
        R"({"model_type": "mpt", "d_model": 8, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "vocab_size": 10)" +
        more + R"(, "attn_config": {"attn_type": "multihead_attention", )" + attention + "}}");
  };
  EXPECT_EQ(mpt("", R"("alibi": true)").ffn, 32) << "four times";
  EXPECT_EQ(mpt(R"(, "expansion_ratio": 3)", R"("alibi": true)").ffn, 24);
  EXPECT_EQ(mpt("", R"("alibi": false)").learned_positions, 64);
  EXPECT_EQ(mpt(R"(, "learned_pos_emb": true)", R"("alibi": true)").learned_positions, 0);
  EXPECT_EQ(mpt(R"(, "learned_pos_emb": false)", R"("alibi": false)").learned_positions, 0);
}

TEST(HfConfig, absent_keys_take_the_default_of_the_class) {
  const Transformer t = model(llama());
  EXPECT_EQ(t.kv_heads, 4) << "old files name no key/value heads: as many as heads";
  EXPECT_EQ(t.head_dim, 2);
  EXPECT_EQ(t.max_positions, 2048);
  EXPECT_FALSE(t.tied_embeddings);
  EXPECT_TRUE(model(R"({"model_type": "gemma2", "hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 4})")
                  .tied_embeddings);
  const Transformer gemma3 = model(R"({"model_type": "gemma3", "text_config":
      {"hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 4}})");
  EXPECT_EQ(gemma3.heads, 8);
  EXPECT_EQ(gemma3.kv_heads, 4);
  EXPECT_EQ(gemma3.head_dim, 256);
  EXPECT_EQ(gemma3.vocab, 262208);
}

TEST(HfConfig, biases_count_where_the_keys_say) {
  const std::int64_t plain = count_parameters(model(llama())).total;
  // Q, K, V and O of 8 each, two layers; gate and up of 16 and down of 8, two layers.
  EXPECT_EQ(count_parameters(model(llama(R"(, "attention_bias": true)"))).total, plain + 2 * 4 * 8);
  EXPECT_EQ(count_parameters(model(llama(R"(, "mlp_bias": true)"))).total, plain + 2 * (16 + 16 + 8));
}

TEST(HfConfig, gpt2_by_its_own_names) {
  const Transformer t = model(
      R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "n_inner": null, "n_positions": 5, "vocab_size": 10})");
  EXPECT_EQ(t.hidden, 8);
  EXPECT_EQ(t.heads, 2);
  EXPECT_EQ(t.ffn, 32) << "four times hidden when n_inner is null";
  EXPECT_EQ(count_parameters(t).position_embedding, 5 * 8);
}

TEST(HfConfig, falcon_of_the_new_kind_has_groups_and_two_norms) {
  const std::string start = R"({"model_type": "falcon", "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 10,
      "num_attention_heads": 4, "num_kv_heads": 2)";
  const Transformer grouped = model(start + R"(, "new_decoder_architecture": true})");
  EXPECT_EQ(grouped.kv_heads, 2);
  EXPECT_EQ(grouped.norms.per_layer, 2);
  const Transformer old = model(start + "}");
  EXPECT_EQ(old.kv_heads, 1) << "multi-query, whatever num_kv_heads says";
  EXPECT_EQ(old.norms.per_layer, 1);
  EXPECT_EQ(old.block_order, BlockOrder::parallel);
}

TEST(HfConfig, llama4_alternates_dense_and_moe_layers_by_its_step) {
  const Transformer t = model(R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
      "hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 3,
      "intermediate_size_mlp": 6, "vocab_size": 10, "num_local_experts": 5, "num_experts_per_tok": 1,
      "interleave_moe_layer_step": 2}})");
  EXPECT_FALSE(t.layer_specs[0].moe);
  EXPECT_TRUE(t.layer_specs[1].moe);
  EXPECT_EQ(layer_parameters(t, 0).dense_mlp, 3 * 8 * 6);
  EXPECT_EQ(layer_parameters(t, 1).experts, 5 * 3 * 8 * 3);
  EXPECT_EQ(layer_parameters(t, 1).shared_experts, 3 * 8 * 3);
  EXPECT_EQ(layer_parameters(t, 1).router, 5 * 8);
}

TEST(HfConfig, nested_files_may_tie_at_the_outer_level) {
  const std::string inner =
      R"("text_config": {"model_type": "qwen2", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 4, "vocab_size": 10)";
  EXPECT_TRUE(model(R"({"model_type": "some_vl", "tie_word_embeddings": true, )" + inner + "}}").tied_embeddings);
  EXPECT_FALSE(model(R"({"model_type": "some_vl", "tie_word_embeddings": true, )" + inner +
                     R"(, "tie_word_embeddings": false}})")
                   .tied_embeddings);
}

TEST(HfConfig, qwen_windows_begin_at_max_window_layers_when_switched_on) {
  const Transformer t = model(R"({"model_type": "qwen2", "hidden_size": 8, "num_hidden_layers": 3,
      "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 4, "vocab_size": 10,
      "use_sliding_window": true, "sliding_window": 64, "max_window_layers": 2})");
  EXPECT_EQ(t.layer_specs[1].sliding_window, std::nullopt);
  EXPECT_EQ(t.layer_specs[2].sliding_window, 64);
}

TEST(HfConfig, layer_types_win_over_the_rule_of_the_class) {
  const std::string start = R"({"model_type": "gemma2", "hidden_size": 8, "num_hidden_layers": 2,
      "intermediate_size": 4, "layer_types": )";
  const Transformer t = model(start + R"(["full_attention", "sliding_attention"]})");
  EXPECT_EQ(t.layer_specs[0].sliding_window, std::nullopt);
  EXPECT_EQ(t.layer_specs[1].sliding_window, 4096);
  EXPECT_THAT(mistakes(start + R"(["full_attention"]})"), ElementsAre(HasSubstr("1 items for 2 layers")));
  EXPECT_THAT(mistakes(start + R"(["full_attention", "linear_attention"]})"),
              ElementsAre(AllOf(HasSubstr("layer_types[1]"), HasSubstr("linear_attention"))));
}

TEST(HfConfig, keys_it_does_not_know_are_allowed) {
  EXPECT_THAT(mistakes(llama(R"(, "torch_dtype": "bfloat16", "rope_scaling": {"factor": 8.0}, "foo": [1])")),
              IsEmpty());
}

TEST(HfConfig, missing_sizes_are_all_named_at_once) {
  EXPECT_THAT(mistakes(R"({"model_type": "llama"})"),
              ElementsAre(HasSubstr("'hidden_size' is missing"), HasSubstr("'num_hidden_layers' is missing"),
                          HasSubstr("'intermediate_size' is missing"), HasSubstr("'vocab_size' is missing"),
                          HasSubstr("'num_attention_heads' is missing")));
}

TEST(HfConfig, impossible_sizes_are_reported_where_they_stand) {
  EXPECT_THAT(mistakes(llama(R"(,
 "num_key_value_heads": 0)")),
              ElementsAre(AllOf(HasSubstr("config.json:3:"), HasSubstr("num_key_value_heads"))));
  EXPECT_THAT(mistakes(llama(R"(, "head_dim": -2)")), ElementsAre(HasSubstr("head_dim")));
  EXPECT_THAT(mistakes(llama(R"(, "head_dim": 1e30)")), ElementsAre(HasSubstr("head_dim")));
  EXPECT_THAT(mistakes(llama(R"(, "num_key_value_heads": "two")")), ElementsAre(HasSubstr("num_key_value_heads")));
  EXPECT_THAT(mistakes(llama(R"(, "num_key_value_heads": 3)")),
              ElementsAre(HasSubstr("3 key/value heads do not divide 4 heads")));
}

TEST(HfConfig, heads_must_divide_hidden_unless_head_dim_is_given) {
  const std::string start = R"({"model_type": "llama", "hidden_size": 10, "num_hidden_layers": 1,
      "num_attention_heads": 4, "intermediate_size": 4, "vocab_size": 10)";
  EXPECT_THAT(mistakes(start + "}"), ElementsAre(HasSubstr("4 heads do not divide hidden size 10")));
  EXPECT_THAT(mistakes(start + R"(, "head_dim": 7})"), IsEmpty());
}

TEST(HfConfig, synonyms_must_agree) {
  EXPECT_THAT(mistakes(llama(R"(, "n_embd": 8)")), IsEmpty());
  EXPECT_THAT(mistakes(llama(R"(, "n_embd": 16)")), ElementsAre(HasSubstr("'n_embd' is 16 but 'hidden_size' is 8")));
}

TEST(HfConfig, an_unknown_model_type_is_answered_with_the_near_one) {
  EXPECT_THAT(mistakes(R"({"model_type": "lama"})"),
              ElementsAre(AllOf(HasSubstr("config.json:1:"), HasSubstr("'lama'"), HasSubstr("did you mean 'llama'"))));
  EXPECT_THAT(mistakes(R"({"hidden_size": 8})"), ElementsAre(HasSubstr("'model_type' is missing")));
  EXPECT_THAT(mistakes("[1]"), testing::SizeIs(1));
}

TEST(HfConfig, experts_a_token_visits_are_at_most_all) {
  EXPECT_THAT(mistakes(R"({"model_type": "mixtral", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 8, "intermediate_size": 4, "vocab_size": 10, "num_local_experts": 2,
      "num_experts_per_tok": 3})"),
              ElementsAre(HasSubstr("3 experts of only 2")));
}

TEST(HfConfig, sizes_that_would_overflow_together_are_refused) {
  EXPECT_THAT(mistakes(R"({"model_type": "mixtral", "hidden_size": 16777216, "num_hidden_layers": 10000,
      "num_attention_heads": 65536, "intermediate_size": 16777216, "vocab_size": 268435456,
      "num_local_experts": 65536, "num_experts_per_tok": 2})"),
              ElementsAre(HasSubstr("more than 10^18 parameters")));
  EXPECT_THAT(mistakes(R"({"model_type": "llama", "hidden_size": 16777217, "num_hidden_layers": 10001,
      "num_attention_heads": 65537, "intermediate_size": 16777217, "vocab_size": 268435457})"),
              testing::SizeIs(5));
}

TEST(HfConfig, a_file_that_is_not_there_is_the_users_mistake) {
  EXPECT_THROW((void)load_hf_config("no-such-folder/config.json"), InputError);
}

}  // namespace
}  // namespace ulysim::workload

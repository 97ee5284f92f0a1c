// Which question this answers: do the JSON Schema that editors use and the loader know the same keys and words? (That
// the loader reads every key of its table, and no other, it checks itself at every load.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/config/document.h"
#include "sim/scenario/keys.h"

namespace ulysim::scenario {
namespace {

using config::Node;
using testing::UnorderedElementsAreArray;

const Node& at(const Node& node, std::initializer_list<std::string_view> path) {
  const Node* found = &node;
  for (const std::string_view key : path) {
    found = found->find(key);
    if (found == nullptr) {
      throw std::runtime_error("the schema has no '" + std::string(key) + "'");
    }
  }
  return *found;
}

std::vector<std::string> keys_of(const Node& properties) {
  std::vector<std::string> names;
  for (const config::Entry& entry : properties.entries) {
    names.push_back(entry.key);
  }
  return names;
}

/// What a key takes beside a single value.
const Node& alternative(const Node& properties, std::string_view key) {
  return at(properties, {key, "anyOf"}).items.at(1);
}

/// The words of a key: all that it takes, or one of several things.
const Node& enum_of(const Node& key) {
  const Node* several = key.find("anyOf");
  return at(several == nullptr ? key : several->items.at(0), {"enum"});
}

/// Where each section of the table stands in the schema.
std::map<std::string, const Node*> sections(const Node& schema) {
  const Node& training = at(schema, {"$defs", "training", "properties"});
  const Node& attention = at(training, {"attention", "properties"});
  const Node& mask = at(alternative(attention, "mask"), {"properties"});
  const Node& length = at(alternative(training, "sequence_length"), {"properties"});
  const Node& trainable = at(alternative(training, "trainable"), {"properties"});
  return {{"scenario", &at(schema, {"properties"})},
          {"cluster", &at(schema, {"$defs", "cluster", "properties"})},
          {"network", &at(schema, {"$defs", "network", "properties"})},
          {"training", &training},
          {"attention", &attention},
          {"mask", &mask},
          {"block_sparse", &at(mask, {"block_sparse", "properties"})},
          {"sequence_length", &length},
          {"trainable", &trainable},
          {"lora", &at(trainable, {"lora", "properties"})},
          {"distribution", &at(length, {"distribution", "properties"})},
          {"recompute", &at(alternative(training, "recompute"), {"properties"})},
          {"optimizer", &at(training, {"optimizer", "properties"})}};
}

Node schema() {
  return config::load_file(std::string(ULYSIM_SOURCE_DIR) + "/scenarios/scenario.schema.json");
}

std::vector<std::string> table_keys(std::string_view section) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.section == section) {
      names.emplace_back(key.name);
    }
  }
  return names;
}

TEST(Schema, HasTheKeysOfTheLoader) {
  const Node root = schema();
  const Node sweep = config::load_file(std::string(ULYSIM_SOURCE_DIR) + "/scenarios/sweep.schema.json");
  auto all = sections(root);
  all["sweep"] = &at(sweep, {"properties"});
  all["range"] = &at(sweep, {"$defs", "range", "properties"});
  EXPECT_THAT(keys_of(at(sweep, {"$defs", "base", "properties"})), UnorderedElementsAreArray(table_keys("scenario")));
  for (const auto& [section, properties] : all) {
    EXPECT_THAT(keys_of(*properties), UnorderedElementsAreArray(table_keys(section))) << section;
  }
}

TEST(Schema, APlanTakesItsOwnKeysAndThoseOfTraining) {
  const Node root = schema();
  std::vector<std::string> expected = table_keys("plan");
  const std::vector<std::string> training = table_keys("training");
  expected.insert(expected.end(), training.begin(), training.end());
  EXPECT_THAT(keys_of(at(root, {"$defs", "plan", "properties"})), UnorderedElementsAreArray(expected));
}

TEST(Schema, ListsTheWordsThatTheLoaderTakes) {
  const Node root = schema();
  auto all = sections(root);
  all["plan"] = &at(root, {"$defs", "plan", "properties"});
  int compared = 0;
  for (const Key& key : keys()) {
    if (key.words.empty()) {
      continue;
    }
    std::vector<std::string> words;
    for (const Node& word : enum_of(at(*all.at(std::string(key.section)), {key.name})).items) {
      words.push_back(word.text);
    }
    EXPECT_THAT(words, UnorderedElementsAreArray(key.words)) << key.section << "." << key.name;
    ++compared;
  }
  EXPECT_GE(compared, 12);
}

TEST(Schema, RefusesUnknownKeysAsTheLoaderDoes) {
  const Node root = schema();
  for (const char* definition : {"cluster", "network", "training", "plan"}) {
    EXPECT_EQ(at(root, {"$defs", definition, "additionalProperties"}).text, "false") << definition;
  }
}

}  // namespace
}  // namespace ulysim::scenario

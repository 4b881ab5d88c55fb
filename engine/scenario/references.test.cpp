// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/references.h"

#include <gtest/gtest.h>

#include "engine/scenario/scenario.h"
#include "engine/testing/hand_made_result.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

using Numbers = std::vector<std::optional<std::size_t>>;
const std::nullopt_t none = std::nullopt;

Scenario swept_scenario(const std::string& sweep) {
  return hand_made::plane({}, sweep);
}

std::string reference_refusal(const Scenario& scenario, const std::string& against,
                              const std::string& key = "") {
  return refusal_line([&] {
    key.empty() ? references_against(scenario, against) : references_by_key(scenario, key);
  });
}

const std::string crossed = "[sweep]\n\"data.n\" = [10, 20]\n\"data.noise.sd\" = [0.5, 1.0, 2.0]\n";

TEST(References, AConditionByItsNumberIsThatOfAllOthers) {
  const References found = references_against(swept_scenario(crossed), "#4");
  EXPECT_EQ(found.of, (Numbers{4, 4, 4, 4, none, 4}));
  EXPECT_EQ(found.text, "condition #4");
}

TEST(References, AValueIsTakenWithAllOtherKeysEqual) {
  const Scenario scenario = swept_scenario(crossed);
  EXPECT_EQ(references_against(scenario, "data.n=20").of, (Numbers{3, 4, 5, none, none, none}));
  EXPECT_EQ(references_against(scenario, "data.noise.sd=1").of, (Numbers{1, none, 1, 4, none, 4}));
  EXPECT_EQ(references_by_key(scenario, "data.n").of, (Numbers{none, none, none, 0, 1, 2}));
  EXPECT_EQ(references_by_key(scenario, "n").of, (Numbers{none, none, none, 0, 1, 2}));
  EXPECT_EQ(references_against(scenario, "noise.sd=1").of, (Numbers{1, none, 1, 4, none, 4}));
  EXPECT_EQ(references_by_key(scenario, "data.noise.sd").of, (Numbers{none, 0, 0, none, 3, 3}));
  EXPECT_EQ(references_by_key(scenario, "data.noise.sd").text, "data.noise.sd = 0.5");
}

TEST(References, AValueThatOneConditionHasIsThatOfAll) {
  const std::string zip =
      "[sweep]\nzip = true\n\"data.n\" = [10, 20, 20]\n"
      "\"data.noise.sd\" = [0.5, 1.0, 2.0]\n";
  const Scenario scenario = swept_scenario(zip);
  EXPECT_EQ(references_against(scenario, "data.n=10").of, (Numbers{none, 0, 0}));
  EXPECT_EQ(reference_refusal(scenario, "", "data.n"),
            "--difference: no two conditions differ in data.n alone - name one condition, "
            "--against '#0'");
}

TEST(References, LawsAndTextsAreFoundByTheirNames) {
  const Scenario scenario = swept_scenario(
      "[sweep]\n\"heads.subspaces\" = [{ law = \"aligned\" }, { law = \"haar\", seed = 3 }]\n"
      "\"run.estimator\" = [\"plain\", \"conditional\"]\n");
  EXPECT_EQ(references_against(scenario, "heads.subspaces=haar").of, (Numbers{2, 3, none, none}));
  EXPECT_EQ(references_against(scenario, "heads.subspaces={ law = \"haar\", seed = 3 }").of,
            (Numbers{2, 3, none, none}));
  EXPECT_EQ(references_against(scenario, "run.estimator=conditional").of,
            (Numbers{1, none, 3, none}));
  EXPECT_EQ(references_against(scenario, "run.estimator=\"plain\"").of,
            (Numbers{none, 0, none, 2}));
}

TEST(References, ArraysAreComparedAsNumbers) {
  const Scenario scenario =
      swept_scenario("[sweep]\n\"queries.points\" = [[[0.0, 1.0]], [[0.5, 0]]]\n");
  EXPECT_EQ(references_against(scenario, "queries.points=[[0,1]]").of, (Numbers{none, 0}));
}

TEST(References, WhatIsNoConditionIsRefused) {
  const Scenario scenario = swept_scenario(crossed);
  EXPECT_EQ(reference_refusal(scenario, "#-1"),
            "--against: there is no condition \"#-1\" (allowed: #0 to #5)");
  EXPECT_EQ(reference_refusal(scenario, "#"),
            "--against: there is no condition \"#\" (allowed: #0 to #5)");
  EXPECT_EQ(reference_refusal(scenario, "1"),
            "--against: \"1\" is not a condition (allowed: #N, from 0, or KEY=VALUE of a swept "
            "key) - write '#1'");
  EXPECT_EQ(reference_refusal(scenario, "data.n=11"),
            "--against: no condition has data.n = 11 (allowed: 10, 20)");
  EXPECT_EQ(reference_refusal(scenario, "data.n="),
            "--against: no condition has data.n =  (allowed: 10, 20)");
  const Scenario one = swept_scenario("");
  EXPECT_EQ(reference_refusal(one, "", "data.n"),
            "--difference: the scenario has one condition - give it a [sweep]");
}

}  // namespace
}  // namespace headlab

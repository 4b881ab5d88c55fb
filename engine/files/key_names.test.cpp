// SPDX-License-Identifier: Apache-2.0
#include "engine/files/key_names.h"

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"

namespace headlab {
namespace {

using Places = std::vector<std::size_t>;

TEST(KeyNames, AKeyGoesByItsLastParts) {
  const std::vector<std::string> keys = {"data.n", "queries.n", "heads.kernel.bandwidth",
                                         "labels.\"a b\"", "n.count"};
  EXPECT_EQ(keys_named("data.n", keys), Places{0});
  EXPECT_EQ(keys_named("bandwidth", keys), Places{2});
  EXPECT_EQ(keys_named("kernel.bandwidth", keys), Places{2});
  EXPECT_EQ(keys_named("a b", keys), Places{3});
  EXPECT_EQ(keys_named("n", keys), (Places{0, 1}));
  // Parts are whole words, and there has to be one.
  for (const char* none : {"", "width", "heads", "kernel", "heads.bandwidth", ".n", "ta.n"}) {
    EXPECT_EQ(keys_named(none, keys), Places{}) << none;
  }
  EXPECT_EQ(key_named("--x", "bandwidth", keys), 2u);
  EXPECT_EQ(key_named("--x", "width", keys), std::nullopt);
  EXPECT_EQ(refusal_line([&] { key_named("--x", "n", keys); }),
            "--x: \"n\": several keys end so - write data.n or queries.n");
  // A whole key is meant where another one ends with it.
  EXPECT_EQ(keys_named("n", {"data.n", "n"}), Places{1});
}

TEST(KeyNames, AMisspeltOneIsNearAKeyOfAsManyParts) {
  const std::vector<std::string> keys = {"data.n", "heads.kernel.bandwidth", "run.seed"};
  EXPECT_EQ(near_key("bandwith", keys), "heads.kernel.bandwidth");
  EXPECT_EQ(near_key("kernel.bandwith", keys), "heads.kernel.bandwidth");
  EXPECT_EQ(near_key("heads.kernel.bandwith", keys), "heads.kernel.bandwidth");
  EXPECT_EQ(near_key("heads.bandwidth", keys), "heads.kernel.bandwidth");
  EXPECT_EQ(near_key("sed", keys), "run.seed");
  for (const char* none : {"", ".", "width", "a.b.c.d.e"}) {
    EXPECT_EQ(near_key(none, keys), "") << none;
  }
}

}  // namespace
}  // namespace headlab

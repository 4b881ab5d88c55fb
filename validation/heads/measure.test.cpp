// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/measure.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/activations/activations.h"
#include "engine/files/error.h"
#include "engine/testing/refusal.h"
#include "kernels/testing/known_layers.h"
#include "validation/heads/layer_sums.h"
#include "validation/heads/refit.h"
#include "validation/heads/testing/arrays_in_memory.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using test::ArraysInMemory;
using test::expect_same_figures;
using test::MadeLayer;
using Memory = std::shared_ptr<ArraysInMemory>;

std::string refusal(const Memory& file) {
  return refusal_line([&] { measure_heads(file, {}, {}, 1); });
}

MeasuredLayer measured(const Memory& file, const HeadSetting& setting = {}, int threads = 2) {
  return measure_heads(file, {}, setting, threads).layers.at(0);
}

bool says(const Memory& file, const std::string& words) {
  const std::vector<std::string> all = words_of(measure_heads(file, {}, {}, 1));
  return std::ranges::any_of(
      all, [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- Identity ----

TEST(Identity, NamesTheScaleThatFits) {
  const MadeLayer made;
  const Memory file = made.arrays();
  made.put_attention(*file, {.scale = 0.5});
  EXPECT_EQ(refusal(file), "accepted");
  file->put("scale", {}, {1});
  EXPECT_TRUE(contains(refusal(file), "- with scale=k**-0.5 it is")) << refusal(file);
  made.put_attention(*file, {.scale = 1});
  EXPECT_EQ(refusal(file), "accepted");
  file->put("scale", {}, {0.5});
  EXPECT_TRUE(contains(refusal(file), "- with scale=1 it is")) << refusal(file);
  file->put("scale", {}, {0.7});
  made.put_attention(*file, {.scale = 0.3});
  EXPECT_TRUE(contains(refusal(file), "fits: look at scale, mask, window, softcap, bias and sink"))
      << refusal(file);
}

TEST(Identity, NamesTheMaskThatFits) {
  const MadeLayer made;
  const Memory file = made.arrays();
  made.put_attention(*file, {.scale = 0.5, .causal = false});
  const std::string found = refusal(file);
  EXPECT_TRUE(contains(found, "layer 0: not what this model attends with: total variation 0."))
      << found;
  EXPECT_TRUE(contains(found, "- with mask=\"full\" it is")) << found;
  file->say("mask", "full");
  EXPECT_EQ(refusal(file), "accepted");
  made.put_attention(*file, {.scale = 0.5});
  EXPECT_TRUE(contains(refusal(file), "- with mask=\"causal\" it is"));
}

TEST(Identity, NamesTheOrderOfGroups) {
  const MadeLayer made;
  const Memory file = made.arrays();
  made.put_attention(*file, {.scale = 0.5});
  // Head h of group g, place i in it, stands where h mod 3 is g.
  for (const char* name : {"q", "attention", "grad_z", "W_O"}) {
    std::vector<double>& values = file->values(name);
    const auto& shape = file->arrays().at(name).shape;
    const std::size_t outer = std::string(name) == "W_O" ? 1 : shape[0];
    const std::size_t size = values.size() / outer / 6;
    const std::vector<double> before = values;
    for (std::size_t b = 0; b < outer; ++b) {
      for (std::size_t h = 0; h < 6; ++h) {
        const std::size_t to = h % 2 * 3 + h / 2;
        std::copy_n(before.begin() + static_cast<std::ptrdiff_t>((b * 6 + h) * size), size,
                    values.begin() + static_cast<std::ptrdiff_t>((b * 6 + to) * size));
      }
    }
  }
  EXPECT_TRUE(contains(refusal(file), "- with keys of head h in group h mod G it is"))
      << refusal(file);
}

TEST(Identity, NamesSwappedAxes) {
  const MadeLayer made{.heads = 6, .groups = 6, .tokens = 6};
  const Memory file = made.arrays();
  made.put_attention(*file, {.scale = 0.5});
  EXPECT_EQ(refusal(file), "accepted");
  for (const char* name : {"q", "k", "v"}) {
    std::vector<double>& values = file->values(name);
    const std::vector<double> before = values;
    const std::size_t n = values.size() / 12 / 36;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t b = i / (36 * n), h = i / (6 * n) % 6, t = i / n % 6;
      values[((b * 6 + t) * 6 + h) * n + i % n] = before[i];
    }
  }
  EXPECT_TRUE(contains(refusal(file), "- with the axes of heads and tokens swapped it is"))
      << refusal(file);
}

TEST(Identity, IsNotSaidWithoutWhatToCompareWith) {
  const Memory file = MadeLayer().arrays();
  EXPECT_TRUE(contains(identity_text(measured(file).identity), "not checked against the model"));
}

// ---- Planted heads ----

TEST(PlantedHeads, ThatAttendAlikeAreExchangeableAndNoMoreIsSaid) {
  const MadeLayer made;
  const Memory file = made.arrays();
  std::vector<double>& q = file->values("q");
  const std::size_t size = made.tokens * made.k;
  for (std::size_t b = 0; b < made.sequences; ++b) {  // heads 0 and 1 share keys
    const auto first = q.begin() + static_cast<std::ptrdiff_t>(b * made.heads * size);
    std::copy_n(first, size, first + static_cast<std::ptrdiff_t>(size));
  }
  const MeasuredLayer layer = measured(file);
  EXPECT_EQ(layer.find("exchange_error")->values[1], 0);
  EXPECT_EQ(layer.find("exchange_error")->values[made.heads], 0);
  EXPECT_GT(layer.find("exchange_error")->values[2], 0);
  EXPECT_TRUE(says(file, "heads 0 and 1 are exchangeable in attention: 0 ± 0 %"));
  EXPECT_FALSE(says(file, "heads 0 and 2"));
  EXPECT_FALSE(says(file, "removed"));
}

TEST(PlantedHeads, ThatWriteNothingAreSaidToWriteNothing) {
  const MadeLayer made;
  const Memory file = made.arrays();
  std::fill_n(file->values("W_O").begin() + 2 * 32, 32, 0.0);
  EXPECT_EQ(measured(file).find("spread_share")->values[2], 0);
  EXPECT_TRUE(says(file, "layer 0: head 2 writes nothing"));
  EXPECT_FALSE(says(file, "head 2 writes little"));
  EXPECT_FALSE(says(file, "head 2, which the other heads can write"));
}

TEST(PlantedHeads, OfOnesThatOthersCanWrite) {
  const MadeLayer made;
  const Memory file = made.arrays();
  for (const char* name : {"q", "k", "v", "W_V"}) file->remove(name);
  // z of head 5 is a linear map of that of head 0.
  std::vector<double> z = test::normals(12 * 6 * 40 * 2, 9);
  for (std::size_t b = 0; b < 12; ++b) {
    for (std::size_t t = 0; t < 40; ++t) {
      const double* from = &z[((b * 6 + 0) * 40 + t) * 2];
      double* const to = &z[((b * 6 + 5) * 40 + t) * 2];
      to[0] = from[0] - 2 * from[1];
      to[1] = 0.5 * from[1];
    }
  }
  file->put("z", {12, 6, 40, 2}, z);
  const MeasuredLayer layer = measured(file);
  const auto& cost = layer.find("refit_cost")->values;
  const auto& spread = layer.find("spread")->values;
  // The ridge keeps 1e-6 of the mean diagonal, which is within a factor of the head's own.
  EXPECT_LT(cost[5], 2e-6 * spread[5]);
  EXPECT_LT(cost[0], 2e-6 * spread[0]);
  EXPECT_GT(cost[1], 0.9 * spread[1]);
  EXPECT_TRUE(says(file, "2 of its 6 heads, which the other heads can write"));
}

TEST(PlantedHeads, OfIndependentOnesNoneIsNamed) {
  const Memory file = MadeLayer().arrays();
  for (const char* never : {"writes little", "can write", "exchangeable", "removed"}) {
    EXPECT_FALSE(says(file, never)) << never;
  }
}

TEST(PlantedHeads, OfFewDocumentsHaveNoErrorsAndNoWords) {
  const MadeLayer made{.sequences = 3};
  const Memory file = made.arrays();
  std::fill_n(file->values("W_O").begin(), 32, 0.0);
  const MeasuredLayer layer = measured(file);
  EXPECT_TRUE(layer.find("spread")->errors.empty());
  EXPECT_EQ(layer.find("refit_cost"), nullptr);
  EXPECT_FALSE(says(file, "writes little"));
  EXPECT_TRUE(says(file, "3 documents: no standard errors"));
  EXPECT_TRUE(says(file,
                   "no refit: it needs 192 tokens (16 for each column of z) and 8 documents, "
                   "there are 120 and 3"));
}

// ---- Bits ----

TEST(MeasuredHeadsBits, AreTheSameOnAnyNumberOfThreads) {
  const Memory file = MadeLayer().arrays();
  expect_same_figures(measured(file, {}, 1), measured(file, {}, 3));
}

/// A float32 safetensors file of the same arrays.
void write_safetensors(const std::string& path, ArraysInMemory& file) {
  std::string header = "{", data;
  for (const auto& [name, info] : file.arrays()) {
    const std::size_t begin = data.size();
    const bool whole = info.kind == NumberKind::whole;
    for (const double value : file.read(name)) {
      const auto single = static_cast<float>(value);
      const auto number = static_cast<std::int64_t>(value);
      data.append(
          whole ? reinterpret_cast<const char*>(&number) : reinterpret_cast<const char*>(&single),
          whole ? sizeof number : sizeof single);
    }
    std::string shape;
    for (const auto length : info.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(length);
    header += (header.size() > 1 ? "," : "") + ("\"layers.3." + name) + "\":{\"dtype\":\"" +
              (whole ? "I64" : "F32") + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += ",\"__metadata__\":{\"mask\":\"causal\"}}";
  const std::uint64_t size = header.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << header << data;
}

TEST(MeasuredHeadsBits, AreTheSameFromEveryFormat) {
  const auto folder = std::filesystem::path(testing::TempDir());
  const std::string npz = layer_answers("real-llama-layer1.npz").string();
  const std::string tensors = (folder / "heads_bits.safetensors").string();
  const std::string netcdf = (folder / "heads_bits.nc").string();
  ArraysInMemory arrays;
  arrays.take(*open_array_file(npz));
  write_safetensors(tensors, arrays);
  write_activations(netcdf, open_array_file(tensors));
  // All queries are read otherwise than some.
  for (const HeadSetting& setting : {HeadSetting(), HeadSetting{.queries = 10}}) {
    const MeasuredHeads first = measure_heads(open_array_file(npz), {}, setting, 2);
    const MeasuredHeads second = measure_heads(open_array_file(tensors), {}, setting, 2);
    const MeasuredHeads third = measure_heads(open_array_file(netcdf), 3, setting, 2);
    EXPECT_EQ(third.layers.at(0).number, 3);
    expect_same_figures(first.layers.at(0), second.layers.at(0));
    expect_same_figures(first.layers.at(0), third.layers.at(0));
  }
}

TEST(MeasuredHeadsBits, AreTheSameWithHeadsThird) {
  const Memory file = MadeLayer().arrays(), third = MadeLayer().arrays();
  for (const char* name : {"q", "k", "v", "grad_z"}) {
    std::vector<std::uint64_t> shape = file->arrays().at(name).shape;
    const std::vector<double> all = file->read(name);
    std::vector<double> turned(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t n = i % shape[3], t = i / shape[3] % shape[2],
                        h = i / (shape[3] * shape[2]) % shape[1],
                        b = i / (shape[3] * shape[2] * shape[1]);
      turned[((b * shape[2] + t) * shape[1] + h) * shape[3] + n] = all[i];
    }
    std::swap(shape[1], shape[2]);
    third->put(name, shape, turned);
  }
  expect_same_figures(measured(file),
                      measure_heads(heads_second(third, "bthk"), {}, {}, 2).layers.at(0));
  EXPECT_THROW(measured(third), InvalidInput);
}

/// Puts z there as attention makes it.
void put_values(const Memory& file) {
  const LayerActivations layer(file, 0);
  const AttentionShape& shape = layer.shape();
  std::vector<double> all;
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    const auto z = attend(layer.rule(), layer.sequence<double>(b), layer.tokens(b), false, 1).z;
    for (Eigen::Index h = 0; h < static_cast<Eigen::Index>(shape.heads); ++h) {
      const auto size = static_cast<Eigen::Index>(shape.e);
      const RowsOf<double> own = z.middleCols(h * size, size);
      all.insert(all.end(), own.data(), own.data() + own.size());
    }
  }
  file->put("z", {layer.sequences(), shape.heads, shape.queries, shape.e}, all);
}

TEST(MeasuredHeadsBits, OfDrawnQueriesDependOnTheSeedAndLeaveZAlone) {
  const Memory file = MadeLayer().arrays();
  put_values(file);
  const HeadSetting some{.queries = 10, .seed = 3};
  const MeasuredLayer one = measured(file, some, 1), again = measured(file, some, 2);
  expect_same_figures(one, again);
  const MeasuredLayer other = measured(file, {.queries = 10, .seed = 4});
  EXPECT_NE(one.find("overlap")->values, other.find("overlap")->values);
  const MeasuredLayer all = measured(file);
  EXPECT_EQ(one.find("spread")->values, all.find("spread")->values);
  for (std::size_t h = 0; h < 6; ++h) {
    const double full = all.find("self")->values[h];
    EXPECT_LE(std::abs(one.find("self")->values[h] - full), 6 * one.find("self")->errors[h]);
  }
}

TEST(MeasuredHeadsBits, OfDrawnQueriesAreThoseOfTheirTokensWhereZIsNotGiven) {
  const Memory file = MadeLayer().arrays();
  const MeasuredLayer all = measured(file, {.queries = 10, .seed = 3});
  EXPECT_EQ(all.tokens, 480U);
  EXPECT_EQ(all.find("second_order")->values, measured(file).find("second_order")->values);
  file->remove("grad_z");
  EXPECT_EQ(measured(file, {.queries = 10, .seed = 3}).tokens, 120U);
  const Memory given = MadeLayer().arrays();
  put_values(given);
  EXPECT_EQ(measured(given, {.queries = 10, .seed = 3}).tokens, 480U);
}

TEST(RemovalMoments, AreOfAllTokensWhetherZIsGivenOrNot) {
  const Memory file = MadeLayer().arrays(), given = MadeLayer().arrays();
  put_values(given);
  const RemovalMoments one = removal_moments(LayerActivations(file, 0), {}, 2, {});
  const RemovalMoments other = removal_moments(LayerActivations(given, 0), {}, 2, {});
  EXPECT_EQ(one.tokens, 480);
  EXPECT_EQ(one.squares, other.squares);
  EXPECT_EQ(one.mean, other.mean);
  EXPECT_EQ(one.losses, other.losses);
}

/// Differences of drawn figures from those of all, over draws.
class Draws {
 public:
  void add(const std::vector<double>& drawn, const std::vector<double>& all) {
    sum_.resize(all.size());
    squares_.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      sum_[i] += drawn[i] - all[i];
      squares_[i] += (drawn[i] - all[i]) * (drawn[i] - all[i]);
    }
    ++count_;
  }

  /// At five standard errors of t with 99 degrees one in 10^4 runs of 30 pairs would fail.
  void expect_none_on_average(const std::function<bool(std::size_t)>& counts) const {
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      if (!counts(i)) continue;
      const double mean = sum_[i] / count_;
      const double variance = (squares_[i] - count_ * mean * mean) / (count_ - 1);
      EXPECT_GT(variance, 0);
      EXPECT_LE(std::abs(mean), 5 * std::sqrt(variance / count_)) << i;
    }
  }

 private:
  double count_ = 0;
  std::vector<double> sum_, squares_;
};

/// Exchanges at 12 of 40 queries, and at 16 of the 32 that are drawn.
TEST(ExchangesAtSomeQueries, AreThoseOfAllOnAverage) {
  const Memory file = MadeLayer().arrays();
  const std::vector<double> all = measured(file).find("exchange_error")->values;
  for (HeadSetting some : {HeadSetting{.exchange_queries = 12}, HeadSetting{.queries = 32}}) {
    Draws draws;
    for (some.seed = 0; some.seed < 100; ++some.seed) {
      draws.add(measured(file, some).find("exchange_error")->values, all);
    }
    draws.expect_none_on_average([](std::size_t pair) { return pair / 6 != pair % 6; });
  }
}

TEST(ExchangesAtSomeQueries, AreAtAPartOfTheDrawnOnes) {
  const Memory file = MadeLayer().arrays();
  const auto exchange = [&](const HeadSetting& setting) {
    return measured(file, setting).find("exchange_error")->values;
  };
  const std::vector<double> drawn = exchange({.queries = 32});
  EXPECT_EQ(drawn, exchange({.queries = 32, .exchange_queries = 16}));
  EXPECT_NE(drawn, exchange({.queries = 32, .exchange_queries = 15}));
}

TEST(ValuesOfDrawnKeys, HaveTheCovarianceOfAllOnAverage) {
  const Memory file = MadeLayer().arrays();
  const LayerActivations layer(file, 0);
  const auto responses = [&](const HeadSetting& setting) {
    const DocumentSums one = layer_sums(layer, setting, KeptMoments::none, 2, {}).groups.at(3);
    EXPECT_EQ(one.degrees, setting.queries == 0 ? 39 : 9);
    const Eigen::MatrixXd mean = one.responses / one.degrees;
    return std::vector<double>(mean.data(), mean.data() + mean.size());
  };
  const std::vector<double> all = responses({});
  Draws draws;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    draws.add(responses({.queries = 10, .seed = seed}), all);
  }
  draws.expect_none_on_average([](std::size_t) { return true; });
}

// ---- What is refused ----

struct WrongLayer {
  const char* name;
  std::function<void(ArraysInMemory&)> change;
  std::string words;
};

class RefusedActivations : public testing::TestWithParam<WrongLayer> {};

TEST_P(RefusedActivations, InOneLine) {
  const Memory file = MadeLayer().arrays();
  ASSERT_EQ(refusal(file), "accepted");
  GetParam().change(*file);
  const std::string found = refusal(file);
  EXPECT_TRUE(contains(found, GetParam().words)) << found;
  EXPECT_FALSE(contains(found, "\n"));
}

void reshape(ArraysInMemory& file, const std::string& name, std::vector<std::uint64_t> shape) {
  std::size_t size = 1;
  for (const std::uint64_t length : shape) size *= length;
  file.put(name, std::move(shape), test::normals(size, 20));
}

TEST(RefusedQueries, AreDrawnOnesThatAreNotFinite) {
  const Memory file = MadeLayer().arrays();
  file->remove("grad_z");  // which would need all queries
  std::vector<double>& q = file->values("q");
  for (std::size_t t = 0; t < 40; ++t) q[((2 * 6 + 5) * 40 + t) * 4 + 3] = std::nan("");
  const std::string found = refusal_line([&] { measured(file, {.queries = 39}); });
  EXPECT_TRUE(contains(found, "q: is not finite at [0][5][")) << found;
  EXPECT_TRUE(found.ends_with("][3] of sequence 2")) << found;
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedActivations,
    testing::Values(
        WrongLayer{"Groups",
                   [](auto& f) {
                     reshape(f, "k", {12, 4, 40, 4});
                   },
                   "k: has 4 groups, which do not divide the 6 heads of W_O"},
        WrongLayer{"Values",
                   [](auto& f) {
                     reshape(f, "v", {12, 3, 40, 3});
                   },
                   "v: has shape 12 x 3 x 40 x 3: its axis value needs 2"},
        WrongLayer{"FewKeys",
                   [](auto& f) {
                     reshape(f, "k", {12, 3, 39, 4});
                   },
                   "k: has 39 keys, fewer than the 40 queries of q"},
        WrongLayer{"NotFinite", [](auto& f) { f.values("v")[40 * 2 * 3 + 5] = std::nan(""); },
                   "v: is not finite at [0][0][2][1] of sequence 1"},
        WrongLayer{
            "Documents",
            [](auto& f) { f.put("document", {11}, std::vector<double>(11), NumberKind::whole); },
            "document: has shape 11: its axis sequence needs 12"},
        WrongLayer{"WholeNumbers",
                   [](auto& f) {
                     f.put("q", {12, 6, 40, 4}, f.values("q"), NumberKind::whole);
                   },
                   "q: has whole numbers, needs floats"},
        WrongLayer{"Scale", [](auto& f) { f.put("scale", {}, {0}); },
                   "scale: needs a number above 0"},
        WrongLayer{"Softcap", [](auto& f) { f.put("softcap", {}, {-1}); },
                   "softcap: needs a number above 0"},
        WrongLayer{"Window", [](auto& f) { f.put("window", {}, {0.5}); },
                   "window: needs a whole number of keys, at least 1"},
        WrongLayer{"Mask", [](auto& f) { f.say("mask", "casual"); },
                   "mask: is \"casual\" (allowed: causal, full, or an array)"},
        WrongLayer{"NoGradient",
                   [](auto& f) {
                     f.put("grad_z", {12, 6, 40, 2}, std::vector<double>(12 * 6 * 80));
                   },
                   "no gradient reached it: grad_z is 0 everywhere"},
        WrongLayer{"NoStream", [](auto& f) { std::fill_n(f.values("residual").begin(), 16, 0.0); },
                   "residual is 0 at a token of sequence 0"},
        WrongLayer{"NoMaps", [](auto& f) { f.remove("W_O"); }, "W_O: is missing"},
        WrongLayer{"Unknown", [](auto& f) { f.put("w_o", {1}, {1}); },
                   "has array w_o, which no layer has"},
        WrongLayer{"Axes",
                   [](auto& f) {
                     reshape(f, "residual", {12, 40});
                   },
                   "residual: has shape 12 x 40, needs sequence, query, d"}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace headlab

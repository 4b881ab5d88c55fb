// SPDX-License-Identifier: Apache-2.0
#include "validation/search/head_sets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/files/document.h"
#include "engine/scenario/subspaces.h"

namespace headlab {
namespace {

/// What an angle or a cosine may be here, from simple to less so; a right angle is written 1.5708.
constexpr double right_angle = 1.5708;

struct Direction {
  double cosine, sine;
};
constexpr std::array<Direction, 4> short_directions = {
    {{0.6, 0.8}, {0.8, 0.6}, {0.28, 0.96}, {0.96, 0.28}}};

/// Significant digits that a number is written with; none for 0, 1 and a right angle, which are
/// words rather than numbers.
int digits_of(double number) {
  if (number == 0 || number == 1 || number == right_angle) return 0;
  const std::string text = number_text(std::abs(number));
  return static_cast<int>(
             std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) -
         (text.starts_with("0.") ? 1 : 0);
}

Simplicity simplicity_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  Simplicity simplicity{.numbers = static_cast<int>(numbers.size())};
  for (double number : numbers) simplicity.digits += digits_of(number);
  return simplicity;
}

/// Writes a law's parameters as TOML; a visitor of parameters().
class LawWriter {
 public:
  template <class T, class... Rest>
  void required(const char* key, const T& member, const Rest&...) {
    text_ += std::string(", ") + key + " = " + toml(member);
  }
  template <class T, class... Rest>
  void optional(const char* key, const T& member, const Rest&...) {
    if (!(member == T{})) required(key, member);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string toml(bool flag) { return flag ? "true" : "false"; }
  static std::string toml(double number) { return number_text(number); }
  static std::string toml(std::uint64_t number) { return std::to_string(number); }
  static std::string toml(int number) { return std::to_string(number); }
  static std::string toml(const PerHead& numbers) { return toml(numbers.values); }
  static std::string toml(const std::string& text) { return to_toml(Value{text, {}}); }
  template <class T>
  static std::string toml(const std::optional<T>& present) {
    return toml(*present);
  }
  template <class T>
  static std::string toml(const std::vector<T>& list) {
    std::string text;
    for (const T& one : list) text += (text.empty() ? "" : ", ") + toml(one);
    return "[" + text + "]";
  }
  std::string text_;
};

Sizes sizes_of(const HeadSizes& sizes) {
  return {.d = sizes.d, .heads = sizes.heads, .k = sizes.k, .n = 1};
}

/// Calls `use` with every multiset of `length` of the numbers 0 .. count - 1, in ascending order.
template <class Use>
void for_each_multiset(std::size_t count, int length, const Use& use) {
  std::vector<std::size_t> chosen(static_cast<std::size_t>(length), 0);
  while (true) {
    use(chosen);
    auto place = chosen.size();
    while (place > 0 && chosen[place - 1] == count - 1) --place;
    if (place == 0) return;
    std::fill(chosen.begin() + static_cast<std::ptrdiff_t>(place) - 1, chosen.end(),
              chosen[place - 1] + 1);
  }
}

/// H unit vectors [H][H coordinates]: one column of all heads, and the numbers that describe it.
struct Arrangement {
  std::vector<std::vector<double>> vectors;
  std::vector<double> numbers;
};

std::vector<std::vector<double>> orthogonal_vectors(std::size_t heads) {
  std::vector<std::vector<double>> vectors(heads, std::vector<double>(heads, 0.0));
  for (std::size_t h = 0; h < heads; ++h) vectors[h][h] = 1;
  return vectors;
}

std::vector<Arrangement> arrangements(std::size_t heads) {
  const auto orthogonal = orthogonal_vectors(heads);
  std::vector<Arrangement> result;
  result.push_back({std::vector(heads, orthogonal[0]), {}});
  result.push_back({orthogonal, {}});

  Arrangement aligned_pair{orthogonal, {2}};
  aligned_pair.vectors[1] = orthogonal[0];
  result.push_back(aligned_pair);

  const std::size_t half = heads / 2;
  Arrangement clusters{std::vector(heads, orthogonal[0]), {2}};
  for (std::size_t h = heads - half; h < heads; ++h) clusters.vectors[h] = orthogonal[1];
  result.push_back(clusters);
  for (const Direction& direction : short_directions) {
    Arrangement turned{std::vector(heads, orthogonal[0]), {2, direction.cosine, direction.sine}};
    Arrangement star{orthogonal, {direction.cosine, direction.sine}};
    for (std::size_t h = heads - half; h < heads; ++h) {
      turned.vectors[h][0] = direction.cosine;
      turned.vectors[h][1] = direction.sine;
    }
    for (std::size_t h = 1; h < heads; ++h) {
      star.vectors[h][0] = direction.cosine;
      star.vectors[h][h] = direction.sine;
    }
    result.push_back(turned);
    result.push_back(star);
  }
  return result;
}

void add_principal_angles(const HeadSizes& sizes, std::vector<HeadSet>& sets) {
  std::vector<double> grid = {0, right_angle};
  // i / 10.0 rather than i * 0.1: the double that "0.3" means.
  for (int i = 1; i <= 15; ++i) grid.push_back(i / 10.0);
  std::sort(grid.begin(), grid.end());
  for_each_multiset(grid.size(), sizes.k, [&](const std::vector<std::size_t>& chosen) {
    PrincipalAngleSubspaces law;
    for (std::size_t i : chosen) law.angles.push_back(grid[i]);
    sets.push_back({"principal angles", sizes, law, simplicity_of(law.angles)});
  });
}

void add_blocks(const HeadSizes& sizes, std::vector<HeadSet>& sets) {
  const auto heads = static_cast<std::size_t>(sizes.heads), k = static_cast<std::size_t>(sizes.k);
  const std::vector<Arrangement> kinds = arrangements(heads);
  for_each_multiset(kinds.size(), sizes.k, [&](const std::vector<std::size_t>& chosen) {
    ExplicitSubspaces law;
    law.matrices.assign(
        heads, std::vector(static_cast<std::size_t>(sizes.d), std::vector<double>(k, 0.0)));
    std::vector<double> numbers;
    for (std::size_t j = 0; j < k; ++j) {
      const Arrangement& kind = kinds[chosen[j]];
      for (std::size_t h = 0; h < heads; ++h) {
        // Block j owns the coordinates j, k + j, 2 k + j ..., as the law principal_angles has it.
        for (std::size_t m = 0; m < heads; ++m) law.matrices[h][m * k + j][j] = kind.vectors[h][m];
      }
      numbers.insert(numbers.end(), kind.numbers.begin(), kind.numbers.end());
    }
    Simplicity simplicity = simplicity_of(numbers);
    // A matrix is more to read than an angle.
    simplicity.numbers += static_cast<int>(std::set(chosen.begin(), chosen.end()).size());
    sets.push_back({"blocks", sizes, std::move(law), simplicity});
  });
}

}  // namespace

Matrices HeadSet::subspaces() const {
  return std::visit([&](const auto& one) { return to_matrices(one.generate(sizes_of(sizes))); },
                    law);
}

std::string HeadSet::toml() const {
  return std::visit(
      [](auto one) {
        LawWriter writer;
        one.parameters(writer);
        return "{ law = \"" + std::string(one.name) + "\"" + writer.text() + " }";
      },
      law);
}

std::vector<HeadSet> head_sets(const HeadSizes& sizes, int haar_draws) {
  if (sizes.heads < 2 || sizes.k < 1 || sizes.k > sizes.d) {
    throw std::invalid_argument("head sets need H >= 2 and 1 <= k <= d");
  }
  std::vector<HeadSet> sets;
  const bool room = sizes.heads * sizes.k <= sizes.d;
  sets.push_back({"named", sizes, AlignedSubspaces{}, {}});
  if (room) {
    sets.push_back({"named", sizes, OrthogonalSubspaces{}, {}});
    add_principal_angles(sizes, sets);
    if (sizes.heads > 2) {
      for (int i = 1; i <= 15; ++i) {
        EquiangularSubspaces law{.angle = i / 10.0};
        sets.push_back({"equiangular", sizes, law, simplicity_of({law.angle})});
      }
      add_blocks(sizes, sets);
    }
  }
  for (int seed = 0; seed < haar_draws; ++seed) {
    HaarSubspaces law{.seed = static_cast<std::uint64_t>(seed)};
    // A draw is described by its seed and explained by nothing short of its matrices.
    const int numbers = sizes.heads * sizes.k * sizes.d;
    sets.push_back({"haar", sizes, law, {.numbers = numbers, .digits = 2 * numbers}});
  }
  return sets;
}

}  // namespace headlab

// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/stack/stack_setting.h"

#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/files/error.h"
#include "engine/scenario/design_rounding.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/sweep.h"
#include "kernels/counted.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"

namespace headlab {

/// Reads the law table of a target.
void read_value(const Value& value, const std::string& key, const Range&, TargetMaps& out) {
  read_law(value, key, out.law);
}

namespace {

constexpr Range token_counts = {.low = 1, .high = 65536, .low_open = false, .high_open = false};
constexpr Range replicate_counts = {.low = 1, .high = 1099511627776.0, .low_open = false};
constexpr int max_samples = 20;

std::string sizes_text(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

void require_matrix(const std::string& key, const NumberRows& rows, std::size_t want_rows,
                    std::size_t want_columns) {
  if (rows.size() == want_rows && rows[0].size() == want_columns) return;
  throw ParameterError(key, "is " + sizes_text(rows.size(), rows[0].size()) + ", must be " +
                                sizes_text(want_rows, want_columns));
}

void require_count(const std::string& key, std::size_t count, std::size_t want,
                   const std::string& what) {
  if (count == want) return;
  throw ParameterError(key, "has " + counted(count, "element") + ", must have " +
                                std::to_string(want) + ", " + what);
}

void require_matrices(const std::string& key, const std::vector<NumberRows>& all, std::size_t count,
                      std::size_t size, const std::string& what) {
  require_count(key, all.size(), count, what);
  for (std::size_t h = 0; h < all.size(); ++h) {
    require_matrix(key + "[" + std::to_string(h) + "]", all[h], size, size);
  }
}

int dimension_of(const TokenDesign& design) {
  return std::visit(
      [](const auto& law) -> int {
        using Law = std::decay_t<decltype(law)>;
        if constexpr (std::is_same_v<Law, GivenTokens>) {
          return static_cast<int>(law.points[0].size());
        } else if constexpr (std::is_same_v<Law, SimplexTokens>) {
          return law.dim;
        } else {
          return law.dimension();
        }
      },
      design);
}

class StackReader {
 public:
  StackReader(const Value& root, DataFiles& files) : root_(root, ""), files_(files) {}

  StackSetting read() {
    root_.allow({"scenario", "tokens", "heads", "layers", "run", labels_section, "sweep", "claim"});
    read_tokens();
    read_run();
    read_heads();
    read_layers();
    check_kernel();
    return std::move(s_);
  }

 private:
  TableReader section(const char* key, const char* doc) const {
    return {root_.need(key, doc), key};
  }
  std::size_t d() const { return static_cast<std::size_t>(d_); }
  std::size_t heads() const { return static_cast<std::size_t>(s_.heads); }

  void read_tokens() {
    const TableReader tokens = section("tokens", "a section with n and design");
    tokens.allow({"n", "design", "fixed_design", "design_seed"});
    tokens.required("n", s_.n, token_counts, "number of tokens");
    const Value& design =
        tokens.need("design", "a law table such as { law = \"normal\", dim = 12 }");
    read_law(design, "tokens.design", s_.design);
    const TableReader table(design, "tokens.design");
    table.checked([&] { check_design(table); });
    d_ = dimension_of(s_.design);
    tokens.optional("fixed_design", s_.fixed_design, "");
    tokens.optional("design_seed", s_.design_seed, "");
    tokens.checked([&] {
      if (tokens.find("design_seed") != nullptr && !s_.fixed_design) {
        throw ParameterError("design_seed",
                             "has no effect without fixed_design = true - add that, or remove "
                             "this");
      }
    });
  }

  void check_design(const TableReader& table) {
    if (auto* file = std::get_if<FileDesign>(&s_.design)) {
      if (file->path.empty()) throw ParameterError("path", "is empty");
      try {
        TableForm form;
        form.parameters(table);
        files_.fill(*file, std::nullopt, form);
      } catch (const InvalidInput& error) {
        throw ParameterError("path", error.what());
      }
    }
    std::visit(
        [&](const auto& law) {
          if constexpr (requires { law.check(); }) {
            law.check();
            require_precision(law, drawn_points);
          }
        },
        s_.design);
    if (const auto* given = std::get_if<GivenTokens>(&s_.design)) {
      if (given->points.size() != s_.n) {
        throw ParameterError("points", "has " + counted(given->points.size(), "row") +
                                           ", tokens.n is " + std::to_string(s_.n));
      }
    }
    const auto* simplex = std::get_if<SimplexTokens>(&s_.design);
    if (simplex == nullptr) return;
    if (s_.n < 2) throw ParameterError("law", "is \"simplex\", which needs n >= 2");
    const int needed = static_cast<int>(s_.n) - (simplex->mu > 0 ? 0 : 1) + simplex->centred;
    if (simplex->dim < needed) {
      throw ParameterError("dim", "is " + std::to_string(simplex->dim) + ", " +
                                      std::to_string(s_.n) + " tokens need " +
                                      std::to_string(needed) + " or more");
    }
  }

  void read_run() {
    const TableReader run = section("run", "a section with seed and replicates");
    run.allow({"seed", "replicates", "spectra"});
    run.optional("seed", s_.seed, "");
    run.required("replicates", s_.replicates, replicate_counts, "number of replicates");
    run.optional("spectra", s_.spectra, "");
  }

  void read_heads() {
    const TableReader heads = section("heads", "a section with count, kernel and maps");
    heads.allow({"count", "dim", "value_dim", "kernel", "maps", "values", "order"});
    heads.required("count", s_.heads, within(1, 1024), "number of heads H");
    const Value& kernel =
        heads.need("kernel", "a law table such as { law = \"softmax\", temperature = 1 }");
    const Value& maps = heads.need("maps", "a law table such as { law = \"gaussian\" }");
    read_law(kernel, "heads.kernel", s_.kernel);
    read_law(maps, "heads.maps", s_.maps);
    heads.choice<bool>("values", s_.averaged, {{"independent", false}, {"averaged", true}});
    heads.choice<bool>("order", s_.alternating, {{"together", false}, {"alternating", true}});
    heads.checked([&] {
      if (s_.averaged && s_.alternating) {
        throw ParameterError("order",
                             "is \"alternating\", which leaves nothing to average - use values = "
                             "\"independent\"");
      }
    });
    const bool drawn = std::holds_alternative<GaussianMapsLaw>(s_.maps) ||
                       std::holds_alternative<PrunedMaps>(s_.maps);
    for (const char* key : {"dim", "value_dim"}) {
      if (drawn || heads.find(key) == nullptr) continue;
      heads.reject_parameter(key,
                             "has no effect with these maps (allowed with law \"gaussian\" or "
                             "\"pruned\")");
    }
    if (drawn) {
      int dim = 1;
      heads.required("dim", dim, within(1, 4096), "dimension d_k of queries and keys");
      s_.dim = dim;
      s_.value_dim = dim;
      heads.optional("value_dim", s_.value_dim, within(1, 4096), "");
    }
    TableReader(maps, "heads.maps").checked([&] { check_maps(); });
    TableReader(kernel, "heads.kernel").checked([&] { check_fixed(); });
  }

  /// Query-key maps are read by softmax alone.
  void check_query_key(bool given, bool has_default) const {
    const bool read = std::holds_alternative<SoftmaxAttention>(s_.kernel);
    if (given && !read) {
      throw ParameterError("query_key", "has no effect: only kernel \"softmax\" reads tokens");
    }
    if (read && !given && !has_default) {
      throw ParameterError("query_key", "is missing - kernel \"softmax\" needs it");
    }
  }

  void check_maps() const {
    const std::size_t values = s_.averaged ? 1 : heads();
    const std::string of_values = s_.averaged ? "one for averaged values" : "one for each head";
    if (const auto* gaussian = std::get_if<GaussianMapsLaw>(&s_.maps)) {
      check_query_key(gaussian->query_key.has_value(), true);
    } else if (const auto* pruned = std::get_if<PrunedMaps>(&s_.maps)) {
      check_query_key(std::get<GaussianMapsLaw>(pruned->of.law).query_key.has_value(), true);
      const int samples = pruned->hidden / d_;
      if (pruned->hidden % d_ != 0 || samples > max_samples) {
        throw ParameterError("hidden", "is " + std::to_string(pruned->hidden) +
                                           ", must be 1 to 20 times the dim " + std::to_string(d_) +
                                           " of the tokens");
      }
    } else if (const auto* scaled = std::get_if<ScaledIdentityMaps>(&s_.maps)) {
      check_query_key(scaled->query_key.has_value(), false);
      require_count("value", scaled->value.size(), values, of_values);
      if (scaled->query_key) {
        require_count("query_key", scaled->query_key->size(), heads(), "one for each head");
      }
    } else {
      const auto& given = std::get<GivenMaps>(s_.maps);
      check_query_key(given.query_key.has_value(), false);
      require_matrices("value", given.value, values, d(), of_values);
      if (given.query_key) {
        require_matrices("query_key", *given.query_key, heads(), d(), "one for each head");
      }
    }
  }

  void check_fixed() const {
    const auto* fixed = std::get_if<FixedAttention>(&s_.kernel);
    if (fixed == nullptr) return;
    require_matrices("matrices", fixed->matrices, heads(), static_cast<std::size_t>(s_.n),
                     "one for each head");
    for (std::size_t h = 0; h < fixed->matrices.size(); ++h) {
      for (std::size_t i = 0; i < fixed->matrices[h].size(); ++i) {
        double sum = 0;
        for (const double weight : fixed->matrices[h][i]) sum += weight;
        if (std::abs(sum - 1) <= 1e-9) continue;
        throw ParameterError("matrices[" + std::to_string(h) + "]",
                             "row " + std::to_string(i + 1) + " sums to " + std::to_string(sum) +
                                 ", must sum to 1 within 1e-9");
      }
    }
  }

  void read_layers() {
    const TableReader layers = section("layers", "a section with count");
    layers.allow({"count", "skip", "branch", "norm", "memory", "mask", "mlp", "weights"});
    layers.required("count", s_.layers, within(1, 4096), "number of layers L");
    layers.optional("skip", s_.skip, "");
    layers.optional("branch", s_.branch, "");
    layers.optional("memory", s_.memory, within(0, 1), "");
    layers.choice<bool>("mask", s_.causal, {{"none", false}, {"causal", true}});
    layers.choice<bool>("weights", s_.shared_weights, {{"fresh", false}, {"shared", true}});
    if (const Value* norm = layers.find("norm")) {
      read_law(*norm, "layers.norm", s_.norm);
      TableReader(*norm, "layers.norm").checked([&] {
        std::visit([&](const auto& law) { check_norm(law); }, s_.norm);
      });
    }
    if (const Value* mlp = layers.find("mlp")) {
      read_law(*mlp, "layers.mlp", s_.mlp);
      TableReader(*mlp, "layers.mlp").checked([&] {
        const auto* given = std::get_if<GivenMlp>(&s_.mlp);
        if (given == nullptr) return;
        require_matrix("input", given->input, d(), given->bias.size());
        require_matrix("output", given->output, given->bias.size(), d());
      });
    }
  }

  void check_norm(const NoNorm&) const {}
  void check_norm(const NormParameters& norm) const {
    if (norm.place != "pre" && norm.place != "post") {
      throw ParameterError("place", "is \"" + one_line(norm.place, 60) + "\" (allowed: pre, post)");
    }
    if (norm.gain) require_count("gain", norm.gain->size(), d(), "one for each coordinate");
    if (norm.bias) require_count("bias", norm.bias->size(), d(), "one for each coordinate");
  }

  void check_kernel() const {
    const bool fixed = std::holds_alternative<FixedAttention>(s_.kernel);
    const TableReader layers = section("layers", "");
    if (s_.memory > 0 && (fixed || std::holds_alternative<UniformAttention>(s_.kernel))) {
      layers.reject_parameter("memory",
                              "needs scores (allowed with kernel softmax, independent_logits)");
    }
    if (s_.causal && fixed) {
      layers.reject_parameter("mask", "is \"causal\" - give masked matrices of kernel \"fixed\"");
    }
  }

  TableReader root_;
  DataFiles& files_;
  StackSetting s_;
  int d_ = 1;
};

Eigen::MatrixXd matrix_of(const NumberRows& rows) {
  Eigen::MatrixXd matrix(rows.size(), rows[0].size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    matrix.row(static_cast<Eigen::Index>(i)) =
        Eigen::Map<const Eigen::RowVectorXd>(rows[i].data(), matrix.cols());
  }
  return matrix;
}

Matrices matrices_of(const std::vector<NumberRows>& all) {
  Matrices matrices;
  for (const NumberRows& rows : all) matrices.push_back(matrix_of(rows));
  return matrices;
}

Matrices identities_of(const std::vector<double>& factors, int d) {
  Matrices matrices;
  for (const double factor : factors) {
    matrices.push_back(factor * Eigen::MatrixXd::Identity(d, d));
  }
  return matrices;
}

Eigen::RowVectorXd numbers_of(const std::optional<std::vector<double>>& numbers) {
  if (!numbers) return {};
  return Eigen::Map<const Eigen::RowVectorXd>(numbers->data(),
                                              static_cast<Eigen::Index>(numbers->size()));
}

/// Rows of the Helmert matrix [n][n-1], whose columns are orthonormal and orthogonal to 1: column k
/// has k ones, then -k, over sqrt(k(k+1)).
Eigen::MatrixXd helmert(Eigen::Index n) {
  Eigen::MatrixXd h = Eigen::MatrixXd::Zero(n, n - 1);
  for (Eigen::Index k = 1; k < n; ++k) {
    const auto count = static_cast<double>(k);
    const double unit = 1 / std::sqrt(count * (count + 1));
    h.col(k - 1).head(k).setConstant(unit);
    h(k, k - 1) = -count * unit;
  }
  return h;
}

Eigen::MatrixXd tokens_of_simplex(const SimplexTokens& law, std::uint64_t count) {
  const auto n = static_cast<Eigen::Index>(count);
  const Eigen::Index width = law.centred ? law.dim - 1 : law.dim;
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(n, width);
  const auto size = static_cast<double>(count);
  x.leftCols(n - 1) = std::sqrt(law.rho * size / (size - 1)) * helmert(n);
  if (law.mu > 0) x.col(n - 1).setConstant(std::sqrt(law.mu));
  if (!law.centred) return x;
  return x * helmert(law.dim).transpose();
}

GaussianMaps gaussian_maps(const StackSetting& s, const GaussianMapsLaw& law, int samples) {
  return {.query_key = law.query_key.value_or(1),
          .value = law.value,
          .k = *s.dim,
          .value_dim = *s.value_dim,
          .samples = samples};
}

void set_maps(const StackSetting& s, int d, Stack& stack) {
  if (const auto* gaussian = std::get_if<GaussianMapsLaw>(&s.maps)) {
    stack.maps = gaussian_maps(s, *gaussian, 0);
  } else if (const auto* pruned = std::get_if<PrunedMaps>(&s.maps)) {
    stack.maps = gaussian_maps(s, std::get<GaussianMapsLaw>(pruned->of.law), pruned->hidden / d);
  } else if (const auto* scaled = std::get_if<ScaledIdentityMaps>(&s.maps)) {
    stack.maps = ExplicitMaps{
        .query_key = identities_of(scaled->query_key.value_or(std::vector<double>{}), d),
        .value = identities_of(scaled->value, d)};
  } else {
    const auto& given = std::get<GivenMaps>(s.maps);
    stack.maps =
        ExplicitMaps{.query_key = matrices_of(given.query_key.value_or(std::vector<NumberRows>{})),
                     .value = matrices_of(given.value)};
  }
}

void set_kernel(const StackSetting& s, Stack& stack) {
  if (const auto* softmax = std::get_if<SoftmaxAttention>(&s.kernel)) {
    stack.temperature = softmax->temperature;
  } else if (const auto* logits = std::get_if<IndependentLogits>(&s.kernel)) {
    stack.kernel = AttentionKernel::independent_logits;
    stack.logit_sd = logits->sd;
    stack.logit_correlation = logits->correlation;
  } else if (const auto* fixed = std::get_if<FixedAttention>(&s.kernel)) {
    stack.kernel = AttentionKernel::fixed;
    stack.fixed = matrices_of(fixed->matrices);
  } else {
    stack.kernel = AttentionKernel::uniform;
  }
}

TokenNorm norm_of(const NoNorm&, NormKind) {
  return {};
}
TokenNorm norm_of(const NormParameters& law, NormKind kind) {
  return {.kind = kind,
          .place = law.place == "pre" ? NormPlace::pre : NormPlace::post,
          .epsilon = law.epsilon,
          .gain = numbers_of(law.gain),
          .bias = numbers_of(law.bias)};
}

}  // namespace

std::vector<LawDescription> describe_stack_laws() {
  std::vector<LawDescription> laws;
  describe_family("tokens", std::variant<GivenTokens, SimplexTokens>(), laws);
  describe_family("attention", AttentionLaw(), laws);
  describe_family("maps", MapsLaw(), laws);
  describe_family("norm", NormLaw(), laws);
  describe_family("mlp", MlpLaw(), laws);
  return laws;
}

bool is_study_of_depth(const Value& root) {
  const Value* depth = nullptr;
  for (const char* key : {"tokens", "layers"}) {
    const Value* found = root.find(key);
    if (found == nullptr) continue;
    depth = found;
    for (const char* other : {"data", "queries"}) {
      const Value* regression = root.find(other);
      if (regression == nullptr) continue;
      reject(regression->location, other,
             std::string("cannot stand next to [") + key +
                 "]: a study of regression has [data] and [queries], one of depth [tokens] and "
                 "[layers]");
    }
  }
  return depth != nullptr;
}

StackSetting read_stack_setting(const Value& root, DataFiles& files) {
  return StackReader(root, files).read();
}

StackBytes stack_bytes(const StackSetting& s) {
  // No factor is above 2^16 or so, and no sum of products near 2^64.
  const std::uint64_t n = s.n;
  const auto d = static_cast<std::uint64_t>(dimension_of(s.design));
  const auto heads = static_cast<std::uint64_t>(s.heads);
  StackBytes all;
  if (std::holds_alternative<SimplexTokens>(s.design))
    all.tokens = 8 * (2 * n * n + 2 * n * d + d * d);
  if (std::holds_alternative<GivenTokens>(s.design)) all.tokens = 8 * n * d;
  if (std::holds_alternative<FixedAttention>(s.kernel)) all.tokens += 8 * heads * n * n;
  const bool drawn =
      std::holds_alternative<GaussianMapsLaw>(s.maps) || std::holds_alternative<PrunedMaps>(s.maps);
  if (!drawn) all.maps = 8 * 2 * heads * d * d;
  return all;
}

Plan make_stack_plan(const StackSetting& s) {
  Plan plan;
  plan.n = s.n;
  plan.d = dimension_of(s.design);
  plan.seed = s.seed;
  if (s.fixed_design) plan.fixed_design_seed = s.design_seed;

  Stack stack;
  std::visit(
      [&](const auto& law) {
        using Law = std::decay_t<decltype(law)>;
        if constexpr (std::is_same_v<Law, GivenTokens>) {
          stack.tokens = matrix_of(law.points);
        } else if constexpr (std::is_same_v<Law, SimplexTokens>) {
          stack.tokens = tokens_of_simplex(law, s.n);
        } else {
          plan.design = law.sampler(plan.table);
        }
      },
      s.design);
  stack.layers = s.layers;
  stack.heads = s.heads;
  set_kernel(s, stack);
  set_maps(s, plan.d, stack);
  stack.averaged = s.averaged;
  stack.alternating = s.alternating;
  stack.skip = s.skip;
  stack.branch = s.branch;
  const NormKind kind = std::holds_alternative<RmsNorm>(s.norm) ? NormKind::rms : NormKind::layer;
  stack.norm = std::visit([&](const auto& law) { return norm_of(law, kind); }, s.norm);
  stack.memory = s.memory;
  stack.causal = s.causal;
  if (const auto* relu = std::get_if<ReluMlp>(&s.mlp)) {
    stack.mlp = GaussianMlp{.width = relu->width, .scale = relu->scale, .bias = relu->bias};
  } else if (const auto* given = std::get_if<GivenMlp>(&s.mlp)) {
    stack.mlp = Mlp{.input = matrix_of(given->input),
                    .bias = numbers_of(given->bias),
                    .output = matrix_of(given->output)};
  }
  stack.shared_weights = s.shared_weights;
  stack.spectra = s.spectra;
  plan.stack = std::make_shared<const Stack>(std::move(stack));
  return plan;
}

}  // namespace headlab

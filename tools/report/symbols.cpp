// SPDX-License-Identifier: Apache-2.0
#include "tools/report/symbols.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "tools/report/mathml.h"

namespace headlab::tools {

const std::vector<Symbol>& symbols_of_regression() {
  static const std::vector<Symbol> all = {
      {"n", "n", "number of training points"},
      {"d", "d", "dimension of the design"},
      {"X", "X_i", "design point i; X any of them"},
      {"Y", "Y_i", "its response"},
      {"m", "m", "regression function, which f estimates"},
      {"e", "e_i", "noise of point i"},
      {"x", "x", "query: the point at which f is evaluated"},
      {"D", "D", "budget of dimensions"},
      {"H", "H", "number of heads"},
      {"h", "h, l", "heads, from 0 on"},
      {"d_k", "d_k", "dimension of a head"},
      {"W", "W_h", "matrix by which head h projects points to d_k dimensions"},
      {"K", "K_h", "kernel of head h at the query x"},
      {"w", "w_{h i}", "weight of point i in head h"},
      {"f", "f, f_h", "estimates of the ensemble and of head h"},
      {"a", "a_h", "weight of head h in the ensemble"},
      {"A", "A_h", "tokens that head h sees"},
      {"S", "S_h", "tokens that head h keeps"},
      {"g", "g", "group of points that becomes one token, of |g| points"},
      {"T", "W^T", "transposed W"},
      {"MSE", "MSE", "mean squared error of the ensemble"},
      {"B", "B", "bias of the ensemble"},
      {"V", "V_h", "variance of head h"},
      {"C", "C_{h l}", "covariance of heads h and l"},
      {"E", "E, Var, Cov", "mean, variance and covariance over training sets"},
      {"N", "N(μ, S)", "normal law of mean μ and covariance S"},
      {"U", "U", "uniform law on the set given"},
      {"p", "p", "density"},
      {"I", "I", "identity matrix"},
  };
  return all;
}

const std::vector<Symbol>& symbols_of_layers() {
  static const std::vector<Symbol> all = {
      {"n", "n", "number of tokens"},
      {"d", "d", "dimension of a token"},
      {"L", "L", "number of layers"},
      {"l", "l", "layer, from 1 on; 0 stands for the tokens given"},
      {"H", "H", "number of heads"},
      {"h", "h", "head, from 0 on"},
      {"X", "X", "tokens in front of a layer, n × d, one token a row; X' and X'' after its parts"},
      {"x", "x_i", "token i"},
      {"m", "m", "mean token"},
      {"R", "R", "residual, n × d: tokens without their mean"},
      {"Z", "Z", "tokens that the heads see; Z' those that the MLP sees"},
      {"A", "A_h", "attention of head h, n × n, rows of sum 1"},
      {"S", "S_h", "scores of head h, n × n"},
      {"M", "M_h", "query-key map of head h, d × d"},
      {"V", "V_h", "value map of head h, d × d"},
      {"W", "W", "matrices of the maps of queries, keys, values and outputs, and of the MLP"},
      {"Q", "Q, K, V, O", "as subscripts: queries, keys, values, outputs"},
      {"d_k", "d_k", "dimension of a head"},
      {"d_v", "d_v", "dimension of a value"},
      {"t", "t", "temperature of the softmax"},
      {"s", "s", "skip"},
      {"b", "b", "branch"},
      {"a", "a", "memory"},
      {"P", "P_l", "rollout of the attention of layers 1 to l, P_0 = I"},
      {"σ", "σ_i", "singular values of X, the largest first"},
      {"λ", "λ_2", "second largest eigenvalue in absolute value"},
      {"τ", "τ", "Dobrushin coefficient"},
      {"E", "E", "mean over replicates"},
      {"N", "N(μ, v)", "normal law of mean μ and variance v"},
      {"I", "I", "identity matrix"},
      {"T", "X^T", "transposed X"},
      {"tr", "tr", "trace"},
      {"rank", "rank", "rank of a matrix"},
      {"softmax", "softmax", "exponentials of a row, divided by their sum"},
      {"relu", "relu", "positive part, entry by entry"},
  };
  return all;
}

const std::vector<Symbol>& symbols_of_heads() {
  static const std::vector<Symbol> all = {
      {"H", "H", "number of heads"},
      {"d", "d", "dimension of the design"},
      {"d_k", "d_k", "dimension of a head"},
      {"θ", "θ_j", "principal angle j of two heads, j = 1 to d_k"},
      {"b", "b", "bandwidth of the Gaussian kernel"},
      {"t", "t", "temperature of the softmax"},
      {"λ", "λ_i", "eigenvalues of the mean projection over d_k, of sum 1"},
  };
  return all;
}

void add_symbols(const std::vector<Symbol>& table, std::vector<Section>& sections) {
  std::string items;
  for (const Symbol& symbol : table) {
    std::string identifier;
    std::istringstream parts(symbol.name);
    for (std::string part; std::getline(parts, part, '_');) identifier += element("mi", part);
    const bool used = std::ranges::any_of(sections, [&](const Section& section) {
      return section.html.find(identifier) != std::string::npos;
    });
    if (!used) continue;
    items += element("div", element("dt", mathml(symbol.shown)) + " " +
                                element("dd", prose(symbol.words))) +
             "\n";
  }
  if (items.empty()) return;
  sections.push_back({"Symbols", element("dl", {{"class", "symbols"}}, "\n" + items) + "\n"});
}

std::string where_html(const std::string& family, const std::string& law) {
  // Formulas with the words behind them.
  struct Where {
    const char* formula;
    const char* words;
  };
  static const std::map<std::string, Where> all = {
      {"regression random_cosines",
       {"ν_j = z_j / \"length_scale\", φ_j ~ U(0, 2 π)",
        ", drawn once, z of law N(0, I) or, given a smoothness, of Student t with twice as many "
        "degrees of freedom"}},
      {"regression file", {"y_i = \"value of row i in the column\"", ""}},
      {"regression step", {"1[·]", " is 1 where the condition holds, else 0"}},
      {"noise student_t", {"t_{df}", " of Student t with df degrees of freedom"}},
      {"kernel epanechnikov", {"(z)_+ = max(z, 0)", ""}},
      {"kernel triangular", {"(z)_+ = max(z, 0)", ""}},
      {"sequence ar1", {"mean = E X, Σ = Cov(X)", " those of the design"}},
      {"weights geometric", {"sum_h a_h = 1", ""}},
  };
  const auto found = all.find(family + " " + law);
  if (found == all.end()) return "";
  return " " +
         element("span", "where " + mathml(found->second.formula) + prose(found->second.words));
}

}  // namespace headlab::tools

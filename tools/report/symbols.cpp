// SPDX-License-Identifier: Apache-2.0
#include "tools/report/symbols.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "tools/report/mathml.h"

namespace headlab::tools {

const std::vector<Symbol>& symbols_of_regression() {
  static const std::vector<Symbol> all = {
      {"n", "n", "number of training points"},
      {"d", "d", "dimension of the design"},
      {"X", "X_i", "design point i; $X$ any of them"},
      {"X_c", "X_c", "coordinate c of $X$"},
      {"Y", "Y_i", "its response"},
      {"m", "m", "regression function, which $f$ estimates"},
      {"e", "e_i", "noise of point i"},
      {"x", "x", "query: the point at which $f$ is evaluated"},
      {"x_c", "x_c", "coordinate c of $x$"},
      {"x_1", "x_1, …, x_d", "coordinates of $x$"},
      {"D", "D", "budget of dimensions"},
      {"H", "H", "number of heads"},
      {"h", "h", "a head, from 0 on"},
      {"l", "l", "another head"},
      {"d_k", "d_k", "dimension of a head"},
      {"W", "W_h", "matrix by which head $h$ projects points to $d_k$ dimensions"},
      {"K", "K_h", "kernel of head $h$ at the query $x$"},
      {"w", "w_{h i}", "weight of point i in head $h$"},
      {"f", "f", "estimate of the ensemble"},
      {"f_h", "f_h", "estimate of head $h$"},
      {"a", "a_h", "weight of head $h$ in the ensemble"},
      {"A", "A_h", "tokens that head $h$ sees"},
      {"S", "S_h", "tokens that head $h$ keeps"},
      {"g", "g", "group of points that becomes one token, of $|g|$ points"},
      {"T", "W^T", "transposed $W$"},
      {"MSE", "MSE", "mean squared error of the ensemble"},
      {"B", "B", "bias of the ensemble"},
      {"V", "V_h", "variance of head $h$"},
      {"C", "C_{h l}", "covariance of heads $h$ and $l$"},
      {"E", "E", "mean over training sets"},
      {"Var", "Var", "variance over training sets"},
      {"Cov", "Cov", "covariance over training sets"},
      {"N", "N(μ, Σ)", "normal law of mean μ and covariance Σ"},
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
      {"X", "X", "tokens in front of a layer, $n × d$, one token a row"},
      {"X'", "X'", "tokens behind the heads of a layer"},
      {"X''", "X''", "tokens behind the MLP of a layer"},
      {"x", "x_i", "token i"},
      {"x_i^{\"target\"}", "x_i^{\"target\"}", "target of token i"},
      {"m", "m", "mean token"},
      {"R", "R", "residual, $n × d$: tokens without their mean"},
      {"Z", "Z", "tokens that the heads see"},
      {"Z'", "Z'", "tokens that the MLP sees"},
      {"A", "A_h", "attention of head $h$, $n × n$, rows of sum 1"},
      {"S", "S_h", "scores of head $h$, $n × n$"},
      {"M", "M_h", "query-key map of head $h$, $d × d$"},
      {"V", "V_h", "value map of head $h$, $d × d$"},
      {"W_{Q, h}", "W_{Q, h}", "matrix of the queries of head $h$, $d × d_k$"},
      {"W_{K, h}", "W_{K, h}", "matrix of the keys of head $h$, $d × d_k$"},
      {"W_{V, h}", "W_{V, h}", "matrix of the values of head $h$, $d × d_v$"},
      {"W_{O, h}", "W_{O, h}", "matrix of the output of head $h$, $d_v × d$"},
      {"W_1", "W_1", "input matrix of the MLP"},
      {"W_2", "W_2", "output matrix of the MLP"},
      {"b_1", "b_1", "bias of the MLP"},
      {"d_k", "d_k", "dimension of a head"},
      {"d_v", "d_v", "dimension of a value"},
      {"t", "t", "temperature of the softmax"},
      {"s", "s", "skip"},
      {"b", "b", "branch"},
      {"a", "a", "memory"},
      {"P", "P_l", "rollout of the attention of layers 1 to $l$, $P_0 = I$"},
      {"σ", "σ_i", "singular values of $X$, the largest first"},
      {"λ", "λ_2", "second largest eigenvalue in absolute value"},
      {"τ", "τ", "Dobrushin coefficient"},
      {"E", "E", "mean over replicates"},
      {"N", "N(μ, v)", "normal law of mean μ and variance v"},
      {"I", "I", "identity matrix"},
      {"T", "X^T", "transposed $X$"},
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
      {"d", "d", "hidden size of the model"},
      {"d_k", "d_k", "dimension of a head"},
      {"θ", "θ_j", "principal angle j of two heads, $j = 1, …, d_k$"},
      {"b", "b", "bandwidth of the Gaussian kernel"},
      {"t", "t", "temperature of the softmax"},
      {"λ", "λ_i", "eigenvalues of the mean projection over $d_k$, of sum 1"},
  };
  return all;
}

std::string with_formulas(std::string_view text) {
  std::string html;
  bool formula = false;
  for (std::size_t begin = 0; begin <= text.size(); formula = !formula) {
    const std::size_t end = std::min(text.find('$', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (!part.empty()) html += formula ? mathml(part) : prose(part);
    begin = end + 1;
  }
  return html;
}

namespace {

/// Identifiers of MathML in a row, without the elements that place scripts.
std::string flat(std::string html) {
  for (const char* name : {"msubsup", "msub", "msup"}) {
    for (const std::string& tag : {"<" + std::string(name) + ">", "</" + std::string(name) + ">"}) {
      std::string rest;
      std::size_t begin = 0;
      for (std::size_t at = 0; (at = html.find(tag, begin)) != std::string::npos;) {
        rest += html.substr(begin, at - begin);
        begin = at + tag.size();
      }
      html = rest + html.substr(begin);
    }
  }
  return html;
}

/// A symbol as it stands in a flat() formula.
std::string identifier_of(const Symbol& symbol) {
  const std::string formula = flat(mathml(symbol.name));
  const std::size_t begin = formula.find("<mi>"), end = formula.find("</mrow></math>");
  return formula.substr(begin, end - begin);
}

/// Which symbols of a table a page uses: at every place the longest, so that "d_k" is no "d".
void mark_used(const std::vector<std::string>& identifiers, const std::string& html,
               std::vector<bool>& used) {
  const std::string text = flat(html);
  for (std::size_t at = 0; (at = text.find("<mi>", at)) != std::string::npos;) {
    std::size_t longest = identifiers.size(), length = 1;
    for (std::size_t i = 0; i < identifiers.size(); ++i) {
      if (identifiers[i].size() <= length ||
          text.compare(at, identifiers[i].size(), identifiers[i]) != 0) {
        continue;
      }
      longest = i;
      length = identifiers[i].size();
    }
    if (longest < identifiers.size()) used[longest] = true;
    at += length;
  }
}

}  // namespace

void add_symbols(const std::vector<Symbol>& table, std::vector<Section>& sections) {
  std::vector<std::string> identifiers, items;
  for (const Symbol& symbol : table) {
    identifiers.push_back(identifier_of(symbol));
    items.push_back(element("div", element("dt", mathml(symbol.shown)) + " " +
                                       element("dd", with_formulas(symbol.words))) +
                    "\n");
  }
  std::vector<bool> used(table.size());
  for (const Section& section : sections) mark_used(identifiers, section.html, used);
  // An entry may use symbols that no other formula does.
  for (std::vector<bool> before; before != used;) {
    before = used;
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (before[i]) mark_used(identifiers, items[i], used);
    }
  }
  std::string list;
  for (std::size_t i = 0; i < table.size(); ++i) list += used[i] ? items[i] : "";
  if (list.empty()) return;
  sections.push_back({"Symbols", element("dl", {{"class", "symbols"}}, "\n" + list) + "\n"});
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
        ", drawn once; $z ~ N(0, I)$, or of Student t, with twice the smoothness as degrees of "
        "freedom, where a "
        "smoothness is given"}},
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
  return " " + element("span", "where " + mathml(found->second.formula) +
                                   with_formulas(found->second.words));
}

}  // namespace headlab::tools

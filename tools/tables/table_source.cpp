// SPDX-License-Identifier: Apache-2.0
#include "tools/tables/table_source.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "engine/files/enumerators.h"
#include "engine/files/json_reader.h"
#include "engine/moments/error_terms.h"
#include "engine/moments/jackknife.h"
#include "engine/moments/layer_estimates.h"
#include "engine/scenario/stack/stack_laws.h"
#include "tools/cli/layer_table.h"

namespace headlab::tools {
namespace {

/// Puts cells behind those of a column, which are texts from the first text on.
void append(Cells& to, const Cells& more) {
  if (to.index() == more.index()) {
    std::visit(
        [&](auto& all) {
          const auto& other = std::get<std::decay_t<decltype(all)>>(more);
          all.insert(all.end(), other.begin(), other.end());
        },
        to);
    return;
  }
  std::vector<std::string> all = texts_of(to);
  std::ranges::move(texts_of(more), std::back_inserter(all));
  to = std::move(all);
}

class StackedTable : public TableSource {
 public:
  StackedTable(std::vector<std::unique_ptr<TableSource>> parts, std::vector<std::string> names)
      : parts_(std::move(parts)) {
    std::vector<std::string> results;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const TableSource& part = *parts_[i];
      results.insert(results.end(), part.rows, names[i]);
      conditions.insert(conditions.end(), part.conditions.begin(), part.conditions.end());
      rows += part.rows;
      add_names(part.figures, figures);
      add_names(part.shown, shown);
    }
    for (std::vector<std::string>* names_of : {&figures, &shown}) {
      for (std::size_t i = 0; i < names_of->size(); ++i) {
        const std::string name = (*names_of)[i];
        if (!has_both_errors(name)) continue;
        names_of->insert(names_of->begin() + static_cast<std::ptrdiff_t>(++i), name + "_remainder");
      }
    }
    if (conditions.size() != rows) conditions.clear();
    keys.push_back({.name = "result", .cells = std::move(results)});
    for (const auto& part : parts_) {
      for (const TableColumn& key : part->keys) {
        const auto same = [&](const TableColumn& one) {
          return one.name == key.name && one.key == key.key;
        };
        if (std::ranges::none_of(keys, same)) keys.push_back(stacked_key(key));
      }
    }
  }

  bool has(const std::string& name) const override {
    return std::ranges::any_of(parts_, [&](const auto& part) { return part->has(name); });
  }
  TableColumn figure(const std::string& name) const override {
    TableColumn all{.name = name, .whole = true};
    std::vector<double> freedom;
    for (const auto& part : parts_) {
      const bool known = part->has(name);
      TableColumn one = known ? part->figure(name) : nothing(*part);
      if (one.error == "remainder" && has_both_errors(name)) {
        one.error.clear();
        one.errors.clear();
      }
      if (!one.error.empty()) all.error = one.error;
      all.whole = all.whole && (one.whole || !known);
      one.errors.resize(part->rows, no_number);
      append(all.cells, one.cells);
      all.errors.insert(all.errors.end(), one.errors.begin(), one.errors.end());
      if (one.degrees_of_freedom)
        std::ranges::copy(*one.degrees_of_freedom, std::back_inserter(freedom));
      freedom.resize(all.errors.size(), no_number);
    }
    if (all.error.empty()) all.errors.clear();
    all.degrees_of_freedom = std::make_shared<const std::vector<double>>(std::move(freedom));
    return all;
  }

 private:
  static void add_names(const std::vector<std::string>& names, std::vector<std::string>& to) {
    for (const std::string& name : names) {
      if (std::ranges::count(to, name) == 0) to.push_back(name);
    }
  }
  /// A standard error in some parts and a remainder in others, which is then a figure of its own.
  bool has_both_errors(const std::string& name) const {
    return has(name + "_mcse") && has(name + "_remainder");
  }
  static TableColumn nothing(const TableSource& part) {
    return {.name = {}, .cells = std::vector<double>(part.rows, no_number)};
  }
  TableColumn stacked_key(const TableColumn& key) const {
    TableColumn all{.name = key.name, .key = key.key, .whole = key.whole};
    for (const auto& part : parts_) {
      const auto at = std::ranges::find_if(part->keys, [&](const TableColumn& one) {
        return one.name == key.name && one.key == key.key;
      });
      append(all.cells, at == part->keys.end() ? nothing(*part).cells : at->cells);
    }
    return all;
  }

  std::vector<std::unique_ptr<TableSource>> parts_;
};

}  // namespace

std::vector<std::string> texts_of(const Cells& cells) {
  if (const auto* all = std::get_if<std::vector<std::string>>(&cells)) return *all;
  std::vector<std::string> made;
  for (const double number : std::get<std::vector<double>>(cells)) {
    made.push_back(number != number ? "" : number_text(number));
  }
  return made;
}

const char* name_of(TableOf of) {
  return word_of<TableOf::growth>(of, "", "heads", "queries", "pairs", "growth");
}

std::unique_ptr<TableSource> stacked(std::vector<std::unique_ptr<TableSource>> parts,
                                     std::vector<std::string> names) {
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<StackedTable>(std::move(parts), std::move(names));
}

std::vector<std::string> shown_of_run(const TableSource& table, bool sweep, const Value& parameters,
                                      const std::vector<std::string>& measures) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (table.has(name)) names.push_back(name);
  };
  const ErrorTerms<Estimate> none;
  const auto terms = numbers_of<Estimate>(none);
  const auto add_terms = [&](const std::string& prefix, std::initializer_list<TableRole> roles) {
    for (const TableRole role : roles) {
      for (const auto& term : terms) {
        if (term.text.role == role) add(prefix + term.name);
      }
    }
    for (const std::string& name : measures) add(prefix + name);
  };
  if (sweep) {
    add_terms("", {TableRole::term, TableRole::total, TableRole::sweep});
    add_terms("difference_", {TableRole::term, TableRole::total, TableRole::sweep});
    if (table.has("learned_fit")) add("index_chordal");
  } else {
    add_terms("", {TableRole::term, TableRole::total, TableRole::figure, TableRole::sweep});
    // JSON has them in another order than results.nc.
    std::vector<std::string> indices;
    std::ranges::copy_if(table.figures, std::back_inserter(indices), [](const std::string& name) {
      return name.starts_with("index_") && !name.ends_with("_ceiling");
    });
    std::ranges::sort(indices);
    for (const std::string& name : indices) add(name);
  }
  // Fidelity is that of given walks.
  const Value& kernel = member(member(parameters, "heads"), "kernel");
  const bool walks = text_of(member(kernel, "law")) == FixedAttention::name;
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    const bool shown = metric.name != "sink_fidelity" || walks;
    if (shown && !layer_heading(metric.name).empty()) add(metric.name);
  }
  return names;
}

}  // namespace headlab::tools

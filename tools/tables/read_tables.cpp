// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/foreign_files.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_sum.h"
#include "tools/cli/results_folder.h"
#include "tools/report/read_sources.h"
#include "tools/tables/table_source.h"

namespace headlab::tools {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t max_document_bytes = std::size_t{1} << 33;

class TableReader {
 public:
  explicit TableReader(TableOf of) : of_(of) {}

  void add(const std::string& path) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      throw InvalidInput(one_line(path) +
                         ": is not there - give a folder of --out or a file of "
                         "--json");
    }
    if (!fs::is_directory(path, error)) {
      require_merged(path);
      if (!add_file(path)) {
        throw InvalidInput(one_line(path) +
                           ": is not a document of run, theory, validate, allocate, hdi, heads, "
                           "along or diff - give what --out or --json wrote");
      }
      return;
    }
    bool any = false;
    const std::string results = (fs::path(path) / "results.nc").string();
    const bool has_results = fs::is_regular_file(results, error);
    if (has_results) any = add_file(results, path);
    for (const std::string& file : json_files(path)) {
      if (has_results && fs::path(file).filename() == "summary.json") continue;
      try {
        any = add_file(file) || any;
      } catch (const InvalidInput&) {
        if (is_own_name(file)) throw;
      }
    }
    if (!any) {
      require_merged(path);
      throw InvalidInput(one_line(path) +
                         ": holds no results.nc, verdicts.json or other results of headlab - give "
                         "the folder of --out, or a file of --json");
    }
  }

  std::unique_ptr<TableSource> all() { return stacked(std::move(tables_), std::move(names_)); }

 private:
  bool add_file(const std::string& file) { return add_file(file, file); }
  bool add_file(const std::string& file, const std::string& name) {
    std::unique_ptr<TableSource> table = read(file);
    if (!table) return false;
    tables_.push_back(std::move(table));
    names_.push_back(one_line(name));
    return true;
  }

  std::unique_ptr<TableSource> read(const std::string& file) const {
    const std::string name = one_line(file);
    if (fs::path(file).extension() == ".nc") {
      try {
        return table_of_results(std::make_shared<const NetcdfInput>(file), name, of_);
      } catch (const NetcdfError& error) {
        throw InvalidInput(name + ": was not written by headlab run, or is damaged (" +
                           error.what() + ")");
      }
    }
    const std::string text = read_file(file, max_document_bytes);
    const bool has_sum = check_json_sum(file, text);
    const std::optional<Value> document = parse_json(text, MemberOrder::of_file);
    if (!document) {
      throw InvalidInput(name + ": is not JSON" + end_of_json(text) +
                         ", or is damaged - give a folder of --out or a file of "
                         "--json, or make it again");
    }
    std::unique_ptr<TableSource> table = table_of_document(*document, name, of_);
    if (table && !has_sum) note_without_sums(file);
    return table;
  }

  TableOf of_;
  std::vector<std::unique_ptr<TableSource>> tables_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<TableSource> read_tables(const std::vector<std::string>& paths, TableOf of) {
  TableReader reader(of);
  for (const std::string& path : paths) reader.add(path);
  return reader.all();
}

}  // namespace headlab::tools

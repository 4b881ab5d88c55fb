// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include "engine/files/models/architectures.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/stack/stack_setting.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/shipped_scenarios.h"
#include "validation/claims/claim.h"

namespace headlab::tools {
namespace fs = std::filesystem;
namespace {

void list_laws() {
  std::string family;
  std::vector<LawDescription> all = describe_laws();
  for (LawDescription& law : describe_stack_laws()) {
    law.family += ", of studies of depth";
    all.push_back(std::move(law));
  }
  for (const LawDescription& law : all) {
    if (law.family != family) {
      std::cout << (family.empty() ? "" : "\n") << law.family << "\n";
      family = law.family;
    }
    std::cout << wrapped("  " + left(law.name + " ", 18) + law.summary, output_width(), 20) << "\n";
    if (!law.example.empty()) {
      std::cout << wrapped("      " + left("for example", 16) + law.example, output_width(), 22)
                << "\n";
    }
    for (const ParameterDescription& parameter : law.parameters) {
      std::cout << wrapped("      " + left(parameter.key, 16) +
                               left(parameter.required ? "" : "optional", 10) + parameter.range +
                               (parameter.range.empty() || parameter.doc.empty() ? "" : ": ") +
                               parameter.doc,
                           output_width(), 32)
                << "\n";
    }
  }
}

void list_claims() {
  std::cout << "claims, for headlab validate\n";
  for (const Claim& claim : claims()) {
    std::cout << "  " << claim.name << "\n";
    for (const ClaimForm& form : claim.forms) {
      std::cout << wrapped("      " + left(form.name + "  ", 24) + form.statement, output_width(),
                           30)
                << "\n";
    }
  }
}

void list_architectures() {
  std::cout << "architectures of models, for headlab import-heads\n";
  for (const Architecture& one : architectures()) {
    std::string text = "  " + left(one.name, 18) + "model_type " + listed(one.model_types()) + "\n";
    if (!one.left_out.empty()) text += "      left out: " + one.left_out + "\n";
    std::cout << wrapped(text, output_width(), 20);
  }
}

/// The text at [scenario] KEY, or nothing.
std::string text_of(const Value& root, const std::string& key) {
  const Value* section = root.find("scenario");
  const Value* value = section ? section->find(key) : nullptr;
  const auto* text = value ? std::get_if<std::string>(&value->data) : nullptr;
  return text ? *text : "";
}

void list_scenarios() {
  const fs::path folder = scenario_folder();
  const std::vector<fs::path> files = shipped_scenarios();
  if (files.empty()) {
    std::cout << "no scenarios found - headlab is not installed where it was meant to be\n";
    return;
  }
  std::cout << "scenarios in " << folder.string() << "\n";
  for (const fs::path& file : files) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    std::string name, aims;
    try {
      const Value root = parse_toml(text.str(), file.string());
      name = text_of(root, "name");
      aims = text_of(root, "aims");
    } catch (const InvalidInput& problem) {
      name = std::string("cannot be read: ") + problem.what();
    }
    std::cout << "  " << left(file.lexically_relative(folder).string(), 38) << shown(one_line(name))
              << "\n";
    if (!aims.empty()) {
      std::cout << wrapped("      " + shown(one_line(aims)), output_width(), 6) << "\n";
    }
  }
}

struct ListArguments {
  std::string what;

  void list(Options& options) {
    options.text("laws|claims|architectures|scenarios", "", "Which of them; all by default", what);
    options.offer(list_words);
  }
};

ExitCode list(const ListArguments& arguments) {
  const std::string& what = arguments.what;
  if (!what.empty()) known_word("list", what, list_words());
  if (what.empty() || what == "laws") list_laws();
  if (what.empty()) std::cout << "\n";
  if (what.empty() || what == "claims") list_claims();
  if (what.empty()) std::cout << "\n";
  if (what.empty() || what == "architectures") list_architectures();
  if (what.empty()) std::cout << "\n";
  if (what.empty() || what == "scenarios") list_scenarios();
  finish_standard_output();
  return ExitCode::done;
}

}  // namespace

const Texts& list_words() {
  static const Texts words = {"laws", "claims", "architectures", "scenarios"};
  return words;
}

Command list_command() {
  return make_command(
      "list", "Show laws, claims, architectures of models, and the scenarios that come along",
      list);
}

}  // namespace headlab::tools

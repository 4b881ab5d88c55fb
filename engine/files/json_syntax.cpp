// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_syntax.h"

#include <cstdint>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/files/words.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

/// Hands what nlohmann/json finds to a handler.
class JsonEvents : public nlohmann::json_sax<Json> {
 public:
  explicit JsonEvents(JsonHandler& handler) : handler_(handler) {}

  bool start_object(std::size_t) override { return handler_.begin_object(); }
  bool key(std::string& name) override { return handler_.key(std::move(name)); }
  bool end_object() override { return handler_.end_object(); }
  bool start_array(std::size_t) override { return handler_.begin_array(); }
  bool end_array() override { return handler_.end_array(); }
  bool null() override { return handler_.scalar(Value::Null()); }
  bool boolean(bool value) override { return handler_.scalar(value); }
  bool number_integer(std::int64_t number) override { return handler_.scalar(number); }
  bool number_unsigned(std::uint64_t number) override {
    if (number > std::numeric_limits<std::int64_t>::max()) return handler_.scalar(number);
    return handler_.scalar(static_cast<std::int64_t>(number));
  }
  bool number_float(double number, const std::string&) override { return handler_.scalar(number); }
  bool string(std::string& text) override { return handler_.scalar(std::move(text)); }
  bool binary(Json::binary_t&) override { return false; }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception&) override {
    handler_.no_json(byte);
    return false;
  }

 private:
  JsonHandler& handler_;
};

}  // namespace

bool read_json(std::string_view text, JsonHandler& handler) {
  JsonEvents events(handler);
  return Json::sax_parse(text.begin(), text.end(), &events);
}

std::string json_string(std::string_view text, bool ascii) {
  // What the syntax leaves as it is and should be seen has escapes of this form there.
  return visible(Json(std::string(text)).dump(-1, ' ', ascii, Json::error_handler_t::replace));
}

std::string json_number(double number) {
  return Json(number).dump();
}

}  // namespace headlab

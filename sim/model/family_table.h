// The table of a family of models: a text that says its fields, defaults, parameters and operators, read into rows.
// The tables are sim/model/families/*.family, embedded when the program is built; README.md there says what a row
// means.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::model {

/// A key of config.json.
struct FieldRow {
  enum class Kind : std::uint8_t {
    integer,   ///< at least 1
    count,     ///< at least 0
    flag,      ///< true or false
    real,      ///< greater than 0
    text,      ///< one of a few words, each of which is a name of its own in expressions: KEY_WORD
    list,      ///< of layers: true in the layers that it names
    computed,  ///< no key: a name for an expression
    dropout,   ///< a probability
  };
  Kind kind{};
  std::string_view section;             ///< of a nested object's key: the object's
  std::vector<std::string_view> keys;   ///< the main one first
  std::string_view name;                ///< in expressions
  std::string_view fallback;            ///< where it is absent
  std::string_view if_null;             ///< where it is null, if that is something else
  std::string_view role;                ///< what it is to the commands, empty for most
  std::vector<std::string_view> words;  ///< text: those with a meaning
};

/// A row of parameters or operators; blocks have rows inside.
struct TableRow {
  std::string_view word;
  std::vector<std::string_view> arguments;
  std::string_view bias;   ///< expression
  std::string_view only;   ///< expression: the row counts where it is not 0
  bool residual = false;   ///< initialized smaller with depth
  bool per_layer = false;  ///< an expression of it depends on the layer
  std::size_t number = 0;  ///< in its table
  std::vector<TableRow> rows;
};

/// The values of a field that are trained, or else simulated; others are not.
struct Limit {
  std::string_view key;
  std::vector<std::string_view> values;  ///< as JSON
  bool of_simulation = false;
};

struct FamilyTable {
  std::string_view model_type;
  std::string_view class_name;                   ///< what is built
  std::vector<std::string_view> class_prefixes;  ///< beginnings of the names in `architectures`
  std::string_view kind;                         ///< "decoder", "encoder" or "encoder-decoder"
  std::vector<FieldRow> fields;
  std::vector<TableRow> parameters;
  std::vector<TableRow> checks;
  std::vector<TableRow> operators;
  std::vector<Limit> limits;
  std::vector<std::string_view> ignored;    ///< keys that are known and change nothing here
  std::vector<std::string_view> simulated;  ///< where parts are not: how the names of those begin that are; none: all
  std::vector<std::string_view> notes;
  std::string_view untrained;  ///< why the family is not trained, empty where it is
  std::string_view rope;       ///< default theta, empty where there are no rotary positions
  std::string_view rope_part;  ///< default share of a head that turns, empty where all of it does, whatever a file says
  std::size_t rows = 0;
};

/// Sorted by model_type. Parsed once, from the embedded texts.
[[nodiscard]] std::span<const FamilyTable> family_tables();

/// The text must outlive the table. Errors: malformed, `where` is "NAME:LINE".
[[nodiscard]] Result<FamilyTable> parse_family_table(std::string_view text, std::string_view name);

/// A file of sim/model/families/.
struct FamilyText {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const FamilyText> family_texts();

}  // namespace shard::model

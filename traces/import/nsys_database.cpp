// Plain SELECTs over tables that are there, with NULL for columns that are not.
#include "traces/import/nsys_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace shard::import {
namespace {

/// SQLite's virtual machine steps between two looks at the budget: a damaged database may make it walk in circles.
constexpr int kStepsPerLook = 10'000;
constexpr std::size_t kMostNames = 10'000;

Error refused(const std::string& label, sqlite3* database) {
  return {.code = Errc::malformed,
          .what = std::string("is no readable database: ") +
                  (database == nullptr ? "out of memory" : sqlite3_errmsg(database)),
          .where = label + ": byte 0",
          .help = "what nsys export --type sqlite wrote"};
}

}  // namespace

void NsysRows::Finish::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

NsysRows::NsysRows(sqlite3* database, std::string& fault, const std::string& sql)
    : database_(database), fault_(&fault) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fault = sqlite3_errmsg(database);
  statement_.reset(statement);
}

bool NsysRows::next() {
  if (statement_ == nullptr) return false;
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) *fault_ = sqlite3_errmsg(database_);
  return code == SQLITE_ROW;
}

std::int64_t NsysRows::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
bool NsysRows::present(int column) const {
  return sqlite3_column_type(statement_.get(), column) != SQLITE_NULL;
}
std::string NsysRows::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr ? std::string()
                         : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
}

void NsysDatabase::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

NsysDatabase::NsysDatabase(Handle database, std::string label, std::uint64_t bytes)
    : steps_left_(std::make_unique<std::int64_t>(1000 + static_cast<std::int64_t>(bytes / 16))),
      fault_(std::make_unique<std::string>()),
      database_(std::move(database)),
      label_(std::move(label)),
      bytes_(bytes) {
  // Lengths of a damaged record are believed by SQLite; the limit is the whole process's, and only this uses it.
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + (32 << 20) + static_cast<sqlite3_int64>(bytes));
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_progress_handler(
      database_.get(), kStepsPerLook, [](void* left) { return --*static_cast<std::int64_t*>(left) < 0 ? 1 : 0; },
      steps_left_.get());
}

std::set<std::string> NsysDatabase::names(const std::string& sql, int column) {
  std::set<std::string> result;
  NsysRows rows(database_.get(), *fault_, sql);
  while (rows.next() && result.size() < kMostNames) result.insert(rows.text(column));
  return result;
}

std::set<std::string> NsysDatabase::tables() {
  return names("SELECT name FROM sqlite_master WHERE type = 'table'", 0);
}

NsysRows NsysDatabase::select(const std::string& table, const std::vector<std::string>& wanted,
                              const std::string& order) {
  const std::set<std::string> columns = names("PRAGMA table_info(" + table + ")", 1);
  std::string sql = "SELECT ";
  for (const std::string& column : wanted) {
    if (&column != &wanted.front()) sql += ", ";
    sql += columns.contains(column) ? "\"" + column + "\"" : "NULL";
  }
  sql += " FROM " + table;
  if (!order.empty()) sql += " ORDER BY " + order;
  return {database_.get(), *fault_, sql};
}

Error NsysDatabase::no_tables() const {
  return {.code = Errc::malformed,
          .what = fault().empty() ? "is a database without any table of nsys" : "is a damaged database: " + fault(),
          .where = label_ + ": byte 0",
          .help = "what nsys export --type sqlite wrote"};
}

Result<NsysDatabase> NsysDatabase::open(const std::filesystem::path& path) {
  sqlite3* opened = nullptr;
  // immutable: no journal beside it is looked for or made.
  std::string uri = "file:";
  for (const char c : path.string()) {
    if (c == '?' || c == '#' || c == '%') {
      constexpr char kHex[] = "0123456789ABCDEF";
      uri += {'%', kHex[c >> 4 & 15], kHex[c & 15]};
    } else {
      uri += c;
    }
  }
  const int code =
      sqlite3_open_v2((uri + "?immutable=1").c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  Handle database(opened);
  if (code != SQLITE_OK) return refused(path.string(), opened);
  std::error_code ignored;
  return NsysDatabase(std::move(database), path.string(), std::filesystem::file_size(path, ignored));
}

Result<NsysDatabase> NsysDatabase::open(std::span<const std::byte> bytes, std::string_view label) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
  Handle database(opened);
  if (code != SQLITE_OK) return refused(std::string(label), opened);
  // SQLite frees what it is given; read-only, it never writes there.
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));
  if (copy == nullptr) return refused(std::string(label), nullptr);
  std::copy_n(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), copy);
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(opened, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
    return refused(std::string(label), opened);
  }
  return NsysDatabase(std::move(database), std::string(label), bytes.size());
}

const char* nsys_copy_name(std::int64_t kind) {
  switch (kind) {
    case 1: return "Memcpy HtoD";
    case 2: return "Memcpy DtoH";
    case 8: return "Memcpy DtoD";
    case 10: return "Memcpy PtoP";
    default: return "Memcpy";
  }
}

}  // namespace shard::import

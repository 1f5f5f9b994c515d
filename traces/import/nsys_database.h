// What `nsys export --type sqlite` wrote, as rows of tables; nothing in it is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace shard::import {

/// A damaged database's rows end early, and its fault says why.
class NsysRows {
 public:
  NsysRows(sqlite3* database, std::string& fault, const std::string& sql);

  bool next();
  // Of the row that next() came to.
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] bool present(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  struct Finish {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* database_;
  std::string* fault_;
  std::unique_ptr<sqlite3_stmt, Finish> statement_;
};

class NsysDatabase {
 public:
  /// Read-only. Errors: malformed where the file is no database.
  [[nodiscard]] static Result<NsysDatabase> open(const std::filesystem::path& path);
  [[nodiscard]] static Result<NsysDatabase> open(std::span<const std::byte> bytes, std::string_view label);

  [[nodiscard]] std::set<std::string> tables();
  /// Columns in the order asked for; of those that the table has not, NULL. Rows by `order`, where one is given.
  [[nodiscard]] NsysRows select(const std::string& table, const std::vector<std::string>& wanted,
                                const std::string& order = {});
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  /// Empty where nothing is damaged so far.
  [[nodiscard]] const std::string& fault() const { return *fault_; }
  [[nodiscard]] Error no_tables() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  using Handle = std::unique_ptr<sqlite3, Close>;
  NsysDatabase(Handle database, std::string label, std::uint64_t bytes);
  [[nodiscard]] std::set<std::string> names(const std::string& sql, int column);

  std::unique_ptr<std::int64_t> steps_left_;  ///< outlives the database, which looks at it
  std::unique_ptr<std::string> fault_;
  Handle database_;
  std::string label_;
  std::uint64_t bytes_ = 0;
};

/// "Memcpy HtoD", by CUpti_ActivityMemcpyKind.
[[nodiscard]] const char* nsys_copy_name(std::int64_t kind);

}  // namespace shard::import

// Moments are UTC: a folder is often looked at from another machine than saved it.
#include "executor/commands/checkpoint_report.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "executor/state/checkpoint/layout.h"
#include "executor/state/checkpoint/names.h"
#include "sim/cli/output.h"
#include "traces/base/numbers.h"
#include "traces/base/printable.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;
using checkpoint::Listed;
using Json = nlohmann::ordered_json;

std::string name_of_checkpoint(const fs::path& path) {
  return checkpoint::without_slash(fs::absolute(path).lexically_normal()).filename().string();
}

/// When the manifest was written, which is last: by the file system. Without a manifest, of the directory.
std::optional<std::string> moment_saved(const fs::path& path, const char* form) {
  std::error_code fault;
  fs::file_time_type when = fs::last_write_time(path / checkpoint::kManifestFile, fault);
  if (fault) when = fs::last_write_time(path, fault);
  if (fault) return std::nullopt;
  const auto system = std::chrono::file_clock::to_sys(when);
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(system).time_since_epoch().count();
  std::tm parts{};
  char text[64];
  if (gmtime_r(&seconds, &parts) == nullptr || std::strftime(text, sizeof text, form, &parts) == 0) return std::nullopt;
  return text;
}

/// A name out of a file, as it is in JSON and on one line in a table.
cli::Cell name_cell(const std::string& name) {
  return {name, printable_line(name)};
}

constexpr const char* kMomentForPeople = "%Y-%m-%d %H:%M:%S";
constexpr const char* kMomentInJson = "%Y-%m-%dT%H:%M:%SZ";

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

std::string counted(std::int64_t count, const std::string& what) {
  return with_commas(count) + " " + what + (count == 1 ? "" : "s");
}

/// A tensor's file, or another, without the folder; empty where the fault is of the whole checkpoint.
std::string file_at_fault(const VerifiedCheckpoint& each) {
  const std::string folder = each.listed.path.string();
  if (!each.wrong->where.starts_with(folder) || each.wrong->where.size() <= folder.size()) return "";
  const std::string_view rest = std::string_view(each.wrong->where).substr(folder.size());
  const std::size_t begin = rest.find_first_not_of('/');
  return begin == std::string_view::npos ? "" : std::string(rest.substr(begin));
}

const VerifiedCheckpoint* newest_right(const std::vector<VerifiedCheckpoint>& verified) {
  const auto at =
      std::find_if(verified.rbegin(), verified.rend(), [](const VerifiedCheckpoint& each) { return !each.wrong; });
  return at == verified.rend() ? nullptr : &*at;
}

/// All of the weights, or of the state.
struct TensorTotals {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::set<std::string> dtypes{};
};

bool is_state(const checkpoint::Reader& reader, std::int32_t number) {
  return reader.file_of(number).name.starts_with(checkpoint::kStateStem);
}

TensorTotals totals_of(const checkpoint::Reader& reader, bool state) {
  TensorTotals totals;
  for (std::int32_t t = 0; t < reader.tensors(); ++t) {
    if (is_state(reader, t) != state) continue;
    const safetensors::Tensor& tensor = reader.tensor(t);
    ++totals.tensors;
    totals.elements += tensor.elements;
    totals.bytes += tensor.end - tensor.begin;
    totals.dtypes.insert(tensor.dtype);
  }
  return totals;
}

std::string totals_text(const TensorTotals& totals) {
  if (totals.tensors == 0) return "none";
  std::string text = counted(totals.tensors, "tensor") + ", " + counted(totals.elements, "element") + ", " +
                     show_bytes(Bytes{totals.bytes});
  for (const std::string& dtype : totals.dtypes) text += ", " + dtype;
  return text;
}

Json totals_json(const TensorTotals& totals) {
  return {{"tensor_count", totals.tensors},
          {"element_count", totals.elements},
          {"bytes", totals.bytes},
          {"dtypes", totals.dtypes}};
}

cli::Table tensor_table(const checkpoint::Reader& reader) {
  cli::Table table;
  table.columns = {{"name", "tensor", cli::Align::left},
                   {"dtype", "dtype", cli::Align::left},
                   {"shape", "shape"},
                   {"bytes", "bytes"},
                   {"file", "file", cli::Align::left}};
  for (std::int32_t t = 0; t < reader.tensors(); ++t) {
    const safetensors::Tensor& tensor = reader.tensor(t);
    const std::int64_t bytes = tensor.end - tensor.begin;
    table.rows.push_back({name_cell(tensor.name),
                          tensor.dtype,
                          safetensors::shape_text(tensor.shape),
                          {bytes, with_commas(bytes)},
                          name_cell(reader.file_of(t).name)});
  }
  return table;
}

Json tensors_json(const checkpoint::Reader& reader) {
  Json all = Json::array();
  for (std::int32_t t = 0; t < reader.tensors(); ++t) {
    const safetensors::Tensor& tensor = reader.tensor(t);
    all.push_back({{"name", tensor.name},
                   {"dtype", tensor.dtype},
                   {"shape", tensor.shape},
                   {"bytes", tensor.end - tensor.begin},
                   {"file", reader.file_of(t).name}});
  }
  return all;
}

Json facts_json(const std::vector<checkpoint::Fact>& facts) {
  Json all = Json::object();
  for (const checkpoint::Fact& fact : facts) all[fact.name] = fact.value;
  return all;
}

std::string facts_text(const std::string& title, const std::vector<checkpoint::Fact>& facts) {
  if (facts.empty()) return "";
  std::string text = "\n" + title + "\n";
  std::size_t width = 0;
  for (const checkpoint::Fact& fact : facts) width = std::max(width, fact.name.size());
  for (const checkpoint::Fact& fact : facts)
    text += "  " + printable_line(fact.name) + std::string(width - fact.name.size() + 2, ' ') +
            printable_line(fact.value) + "\n";
  return text;
}

std::int64_t bytes_of(const checkpoint::Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const checkpoint::FileEntry& file : manifest.files) bytes += file.bytes;
  return bytes;
}

}  // namespace

cli::Table checkpoint_table(const std::vector<Listed>& listed) {
  cli::Table table;
  table.columns = {
      {"name", "checkpoint", cli::Align::left},      {"step", "step"},  {"tokens", "tokens"},
      {"saved_at", "saved (UTC)", cli::Align::left}, {"bytes", "size"}, {"complete", "complete", cli::Align::left},
      {"why_not", "why not", cli::Align::left}};
  for (const Listed& each : listed) {
    const bool known = each.bytes > 0;
    const std::optional<std::string> moment = moment_saved(each.path, kMomentInJson);
    table.rows.push_back({name_cell(name_of_checkpoint(each.path)),
                          each.step,
                          known ? cli::Cell(each.tokens, with_commas(each.tokens)) : cli::Cell(),
                          moment ? cli::Cell(*moment, *moment_saved(each.path, kMomentForPeople)) : cli::Cell(),
                          known ? cli::Cell(each.bytes, show_bytes(Bytes{each.bytes})) : cli::Cell(),
                          {each.complete, each.complete ? "yes" : "no"},
                          each.complete ? cli::Cell() : name_cell(each.why_not)});
  }
  return table;
}

Json list_json(const fs::path& dir, const std::vector<Listed>& listed) {
  Json j = cli::json_document("checkpoint");
  j["action"] = "list";
  j["directory"] = dir.string();
  j["newest_complete"] = nullptr;
  for (const Listed& each : listed)
    if (each.complete) j["newest_complete"] = each.path.string();
  j["checkpoints"] = cli::to_json(checkpoint_table(listed));
  return j;
}

int exit_code_of(const std::vector<VerifiedCheckpoint>& verified) {
  int code = 0;
  for (const VerifiedCheckpoint& each : verified) {
    if (!each.wrong) continue;
    // A manifest that is gone is damage, one that may not be read is not.
    std::error_code fault;
    const bool gone =
        each.wrong->code == Errc::no_input && !fs::exists(each.listed.path / checkpoint::kManifestFile, fault);
    if (gone || each.wrong->code == Errc::malformed) return exit_code(Errc::malformed);
    if (code == 0) code = exit_code(each.wrong->code);
  }
  return code;
}

std::string verified_text(const std::vector<VerifiedCheckpoint>& verified) {
  std::size_t width = 0;
  std::int64_t right = 0;
  for (const VerifiedCheckpoint& each : verified) width = std::max(width, name_of_checkpoint(each.listed.path).size());
  std::string text;
  for (const VerifiedCheckpoint& each : verified) {
    const std::string name = name_of_checkpoint(each.listed.path);
    text += name + std::string(width - name.size() + 2, ' ');
    if (!each.wrong) {
      ++right;
      text += "right, all " + with_commas(each.listed.bytes) + " bytes\n";
      continue;
    }
    const std::string file = file_at_fault(each);
    text += printable_line((file.empty() ? "" : file + " ") + each.wrong->what) + "\n";
  }
  if (right == std::ssize(verified)) return text;
  text += with_commas(right) + " of " + with_commas(std::ssize(verified)) + " right";
  if (const VerifiedCheckpoint* const newest = newest_right(verified); newest != nullptr)
    text += ", the newest of them " + name_of_checkpoint(newest->listed.path);
  return text + "\n";
}

Json verified_json(const fs::path& dir, const std::vector<VerifiedCheckpoint>& verified) {
  Json j = cli::json_document("checkpoint");
  j["action"] = "verify";
  j["directory"] = dir.string();
  j["all_right"] =
      std::ranges::none_of(verified, [](const VerifiedCheckpoint& each) { return each.wrong.has_value(); });
  const VerifiedCheckpoint* const newest = newest_right(verified);
  j["newest_right"] = newest == nullptr ? Json(nullptr) : Json(newest->listed.path.string());
  j["checkpoints"] = Json::array();
  for (const VerifiedCheckpoint& each : verified) {
    const std::string file = each.wrong ? file_at_fault(each) : "";
    j["checkpoints"].push_back({{"name", name_of_checkpoint(each.listed.path)},
                                {"step", each.listed.step},
                                {"right", !each.wrong.has_value()},
                                {"read_bytes", each.bytes_read},
                                {"file", file.empty() ? Json(nullptr) : Json(file)},
                                {"wrong", each.wrong ? Json(each.wrong->what) : Json(nullptr)}});
  }
  return j;
}

std::string checkpoint_text(const checkpoint::Reader& reader, bool tensors) {
  const checkpoint::Manifest& manifest = reader.manifest();
  std::string text = "checkpoint       " + reader.path().string() + "\n";
  text += "step             " + with_commas(manifest.step) + "\n";
  text += "tokens           " + with_commas(manifest.tokens) + "\n";
  text += "micro-batches    " + with_commas(manifest.micro_batches) + "\n";
  if (const auto moment = moment_saved(reader.path(), kMomentForPeople))
    text += "saved            " + *moment + " UTC\n";
  text += "size             " + show_bytes(Bytes{bytes_of(manifest)}) + " in " +
          counted(std::ssize(manifest.files), "file") + ", beside " + checkpoint::kManifestFile + "\n";
  text += "weights          " + totals_text(totals_of(reader, false)) + "\n";
  text += "optimizer state  " + totals_text(totals_of(reader, true)) + "\n";
  text += facts_text("Its numbers depend on", manifest.numbers);
  text += facts_text("About the run", manifest.about);
  cli::Table files;
  files.columns = {{"name", "file", cli::Align::left}, {"bytes", "bytes"}};
  for (const checkpoint::FileEntry& file : manifest.files)
    files.rows.push_back({name_cell(file.name), {file.bytes, with_commas(file.bytes)}});
  text += "\n" + cli::render(files, cli::Format::table, {}).str();
  if (tensors) text += "\n" + cli::render(tensor_table(reader), cli::Format::table, {}).str();
  return text;
}

Json checkpoint_json(const checkpoint::Reader& reader, bool tensors) {
  const checkpoint::Manifest& manifest = reader.manifest();
  Json j = cli::json_document("checkpoint");
  j["action"] = "show";
  j["path"] = reader.path().string();
  j["step"] = manifest.step;
  j["tokens"] = manifest.tokens;
  j["micro_batches"] = manifest.micro_batches;
  j["saved_at"] = text_or_null(moment_saved(reader.path(), kMomentInJson));
  j["bytes"] = bytes_of(manifest);
  j["numbers"] = facts_json(manifest.numbers);
  j["about"] = facts_json(manifest.about);
  j["weights"] = totals_json(totals_of(reader, false));
  j["optimizer_state"] = totals_json(totals_of(reader, true));
  j["files"] = Json::array();
  for (const checkpoint::FileEntry& file : manifest.files)
    j["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  j["tensors"] = tensors ? tensors_json(reader) : Json(nullptr);
  return j;
}

}  // namespace shard::commands

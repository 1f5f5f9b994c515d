// Does a small file of every kind, cut at every byte and with bits flipped, load what is complete or name the
// byte?
#include <fstream>
#include <iterator>

#include "tests/fuzz/import_check.h"
#include "tests/trace_import/files.h"

namespace shard {
namespace {

struct Case {
  std::string name;
  std::string file;
  std::size_t bits = 1;  ///< every so many bits are flipped
};

// A database is opened slowly: every bit of it is for the long run.
#ifdef DAMAGE_EVERY_BIT
constexpr std::size_t kNsysBits = 1;
#else
constexpr std::size_t kNsysBits = 41;
#endif

/// Empty where the program was built without SQLite.
std::string small_nsys() {
  std::ifstream in(TEST_DATA "/fuzz/corpus/nsys_fuzz/small.sqlite", std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const Result<LoadedTrace> loaded = files::read(file);
  return !loaded && loaded.error().code == Errc::unavailable ? std::string() : file;
}

class Damage : public ::testing::TestWithParam<Case> {};

TEST_P(Damage, CutAtEveryByte) {
  const std::string& whole = GetParam().file;
  if (whole.empty()) GTEST_SKIP() << "built without SQLite";
  const LoadedTrace all = files::loaded(whole);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Result<LoadedTrace> part = fuzz::load_checked(files::bytes(whole).first(size));
    if (!part) continue;
    ASSERT_LE(part->trace.spans.size(), all.trace.spans.size()) << size;
    ASSERT_LE(part->memory_event_count, all.memory_event_count) << size;
    // A file that says nothing about its length may end between two packets.
    if (part->trace.complete() && all.format != TraceFormat::perfetto) {
      ASSERT_EQ(part->trace.spans.size(), all.trace.spans.size()) << size;
    }
  }
}

TEST_P(Damage, BitsFlipped) {
  std::string file = GetParam().file;
  for (std::size_t bit = 0; bit < 8 * file.size(); bit += GetParam().bits) {
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
    (void)fuzz::load_checked(files::bytes(file));  // aborts where a promise is broken
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Import, Damage,
                         ::testing::Values(Case{"json", files::small_json()},
                                           Case{"json_gz", files::gzip(files::small_json())},
                                           Case{"perfetto", files::small_perfetto()},
                                           Case{"snapshot", files::small_pickle()},
                                           Case{"nsys", small_nsys(), kNsysBits}),
                         [](const auto& each) { return each.param.name; });

TEST(Damage, FilesOfNoKindAreRefused) {
  for (const std::string& text :
       {std::string(), std::string("hello"), std::string("\x1f\x8b", 2), std::string("PK\3\4")}) {
    const Result<LoadedTrace> result = files::read(text);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::malformed);
    EXPECT_NE(result.error().where.find("byte "), std::string::npos);
  }
  EXPECT_EQ(load_any("/nonexistent/file").error().code, Errc::no_input);
  EXPECT_EQ(load_any("/").error().code, Errc::no_input);
}

}  // namespace
}  // namespace shard

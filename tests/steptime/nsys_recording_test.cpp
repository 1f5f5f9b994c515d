// Does an nsys export have its kernels with grids, and the operators that emit_nvtx named?
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <iterator>

#include "profiler/steptime/read_recording.h"
#include "traces/base/scratch.h"
#include "traces/import/nsys_program.h"

namespace shard::steptime {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1,'_ZN2at6native4fillILi4EEEvi'),(2,'void at::native::fill<(int)4>(int)'),(3,'fill'),
  (4,'sm80_gemm'),(5,'aten::mm, op_id = 5, sizes = [[2, 3], [3, 4]]'),(6,'ncclDevKernel_AllReduce');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000,3000,0,7,11,16777216,2,3,1,9,1,1,64,1,1),
  (4000,8000,0,7,12,16777216,2,3,NULL,9,1,1,64,1,1),(9000,9500,0,7,13,16777216,4,4,4,5,5,1,128,1,1),
  (9600,9900,0,8,14,16777216,6,6,6,5,5,1,128,1,1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (500,600,0,9,15,16777216,4096,1);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900,950,16777217,13,3);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
  globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES (800,990,59,NULL,5,16777217),(700,2000,59,'step 1',NULL,16777217);
)";

std::string make(const Scratch& folder) {
  std::string path = folder.path() + "/run.sqlite";
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, ("PRAGMA page_size=512;" + std::string(kTables)).c_str(), nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  return path;
}

TEST(NsysRecording, DamageIsAnErrorOrARecording) {
  const Result<Scratch> folder = Scratch::make_temporary("the test's files");
  ASSERT_TRUE(folder);
  const std::string path = make(*folder);
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  int errors = 0;
  for (std::size_t i = 0; i < whole.size(); i += 13) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(~damaged[i]);
    std::ofstream(path, std::ios::binary) << damaged;
    if (!read_recording(path)) ++errors;
  }
  EXPECT_GT(errors, 0);
}

TEST(NsysRecording, HasKernelsBySizeOperatorsAndCopies) {
  const Result<Scratch> folder = Scratch::make_temporary("the test's files");
  ASSERT_TRUE(folder);
  const std::string path = make(*folder);
  const Result<Recorded> recorded = read_recording(path);
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  const std::int32_t fill = recorded->kind_of("at::native::fill<4>", {9, 1, 1}, {64, 1, 1});
  ASSERT_GE(fill, 0);
  EXPECT_EQ(recorded->of_kind(fill).count(), 2);  // however the name is spelled
  EXPECT_DOUBLE_EQ(recorded->of_kind(fill).mean(), 3e-6);
  EXPECT_EQ(recorded->kind_of("at::native::fill<4>", {8, 1, 1}, {64, 1, 1}), -1);
  EXPECT_EQ(recorded->kind_of("ncclDevKernel_AllReduce", {5, 5, 1}, {128, 1, 1}), -1);
  const auto product = import::operator_of_range("aten::mm, op_id = 77, sizes = [[2, 3], [3, 4]]");
  ASSERT_TRUE(recorded->of(*product));
  EXPECT_DOUBLE_EQ(*recorded->of(*product), 0.5e-6);
  ASSERT_NE(recorded->copy("HtoD", 4096), nullptr);
  EXPECT_DOUBLE_EQ(recorded->copy("HtoD", 4096)->mean(), 0.1e-6);
}

}  // namespace
}  // namespace shard::steptime

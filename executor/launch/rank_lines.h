// The parent's ends of its ranks' lines: who has come, what each reported, who went without a word.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/ids.h"
#include "traces/base/result.h"

namespace shard {

/// A listening socket at `path` and the lines that ranks opened to it.
class RankLines {
 public:
  /// What became of a rank, in the order in which ranks ended; a death comes before the reports of those who noticed
  /// it.
  struct End {
    Rank rank;
    std::optional<int> exit_code;  ///< absent: it died without a word
    std::string message;
  };

  [[nodiscard]] static Result<RankLines> listen(const std::string& path);
  RankLines(RankLines&& other) noexcept;
  RankLines& operator=(RankLines&&) = delete;
  ~RankLines();

  /// Adds what `serve` waits for to `descriptors`.
  void add_to(std::vector<pollfd>& descriptors) const;
  /// Handles all that can be handled without blocking.
  void serve();
  /// SIGKILL for every rank that still has its line.
  void kill_all() const;

  [[nodiscard]] bool any_came() const { return came_ > 0; }
  [[nodiscard]] bool any_open() const;
  [[nodiscard]] const std::vector<End>& ends() const { return ends_; }

 private:
  struct Line {
    int descriptor = -1;
    int process = -1;  ///< pidfd, -1 where the kernel has none
    std::int32_t process_id = 0;
    std::optional<Rank> rank;  ///< known after its hello
    bool reported = false;
  };
  RankLines() = default;
  void accept_all();
  [[nodiscard]] bool read(Line& line);
  void close(Line& line);

  int listener_ = -1;
  std::vector<Line> lines_;
  std::vector<End> ends_;
  int came_ = 0;
};

}  // namespace shard

// The parent's ends of its ranks' lines: who has come, what each reported, who went without a word.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/ids.h"
#include "traces/base/result.h"
#include "traces/base/run_place.h"

namespace shard {

/// A listening socket at `path` and the lines that ranks opened to it.
class RankLines {
 public:
  /// Where a rank's run was when it last spoke.
  struct Beat {
    Rank rank;
    RunPlace place;
    std::string blocking;  ///< the call that it waits in, or ""
  };

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

  /// By rank: what each is sent when it comes, for its flight recorder. They stay the caller's.
  void hand_out(std::vector<int> recorders) { recorders_ = std::move(recorders); }
  /// Adds what `serve` waits for to `descriptors`.
  void add_to(std::vector<pollfd>& descriptors) const;
  /// Handles all that can be handled without blocking.
  void serve();
  /// Asks every rank that has come, once, to end as `signal` asks (WireHead::stop).
  void ask_to_stop(int signal);

  [[nodiscard]] bool any_came() const { return came_ > 0; }
  [[nodiscard]] bool any_open() const;
  [[nodiscard]] const std::vector<End>& ends() const { return ends_; }
  /// Beats since the last call, and the ranks that came (RunPart::start).
  [[nodiscard]] std::vector<Beat> take_beats() { return std::exchange(beats_, {}); }

 private:
  struct Line {
    int descriptor = -1;
    std::optional<Rank> rank;  ///< known after its hello
    bool reported = false;
    bool asked = false;  ///< to stop
  };
  RankLines() = default;
  void accept_all();
  [[nodiscard]] bool read(Line& line);
  void close(Line& line);

  int listener_ = -1;
  std::vector<Line> lines_;
  std::vector<int> recorders_;
  std::vector<End> ends_;
  std::vector<Beat> beats_;
  int came_ = 0;
};

}  // namespace shard

// Does every way in which joining or staying joined over TCP can fail end at once or at the deadline, with its name?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <random>
#include <thread>

#include "executor/comm/tcp_port.h"
#include "tests/comm/tcp_ranks.h"

namespace shard::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr CommOptions kSoon{.deadline = milliseconds{500}};

std::string what_of(const Joined& joined) {
  return joined ? "joined" : joined.error().what;
}

/// Ranks of one run leave together, since each waits for the others.
void leave(std::vector<Joined*> ranks) {
  std::vector<std::jthread> threads;
  for (Joined* rank : ranks) threads.emplace_back([rank] { *rank = Error{}; });
}

TEST(TcpRendezvous, NamesTheRanksThatDoNotCome) {
  std::vector<TcpPlace> places = places_of(4);
  const std::string where = "127.0.0.1:" + std::to_string(places[0].port);
  places.erase(places.begin() + 2);
  places.pop_back();
  const std::vector<Joined> ranks = join_all(places, kSoon);
  EXPECT_EQ(what_of(ranks[0]), "ranks 2, 3 have not come to " + where + " within 0.5 s");
  EXPECT_EQ(ranks[0].error().code, Errc::retryable);
  EXPECT_THAT(what_of(ranks[1]), HasSubstr("rank 0 stopped: ranks 2, 3 have not come"));
}

TEST(TcpRendezvous, NamesAFirstRankThatDoesNotListen) {
  const TcpPlace second = place_of(1, 2, free_port());
  const std::vector<Joined> ranks = join_all({second}, kSoon);
  // Less than what was given by what passed until it began.
  EXPECT_THAT(what_of(ranks[0]), MatchesRegex("rank 0 at 127.0.0.1:" + std::to_string(second.port) +
                                              " has not been reached within 0.(5|4[0-9]+) s: Connection refused"));
  EXPECT_EQ(ranks[0].error().code, Errc::retryable);
}

TEST(TcpRendezvous, SaysThatThePortIsTaken) {
  const Result<tcp::Socket> taken = tcp::listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(taken.has_value());
  const std::uint16_t port = tcp::own_port(*taken);
  const std::vector<Joined> ranks = join_all({place_of(0, 2, port)}, kSoon);
  EXPECT_EQ(what_of(ranks[0]), "cannot listen at 127.0.0.1:" + std::to_string(port) + ": Address already in use");
  EXPECT_EQ(ranks[0].error().code, Errc::unavailable);
  EXPECT_THAT(ranks[0].error().help, HasSubstr("SHARDSCOPE_PORT"));
}

// The deadline of an hour is not waited for, by rank 0 as little as by another.
TEST(TcpRendezvous, SaysAtOnceThatAnAddressIsNotKnown) {
  for (const int rank : {0, 1}) {
    TcpPlace place = place_of(rank, 2, free_port());
    place.address = "no.such.host.invalid";
    const std::vector<Joined> ranks = join_all({place}, {.deadline = std::chrono::hours{1}});
    EXPECT_THAT(what_of(ranks[0]), HasSubstr("the host 'no.such.host.invalid' is not known here"));
    ASSERT_FALSE(ranks[0].has_value());
    EXPECT_THAT(ranks[0].error().help, HasSubstr("MASTER_ADDR=HOST"));
    EXPECT_EQ(ranks[0].error().code, Errc::unavailable);
  }
}

// Whoever says a loopback does not want to be reached from elsewhere.
TEST(TcpSocket, ListensAtTheLoopbackThatIsSaidAlone) {
  const Result<tcp::Socket> second = tcp::listen_at({"127.0.0.2", 0});
  ASSERT_TRUE(second.has_value());
  const std::uint16_t port = tcp::own_port(*second);
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  ASSERT_EQ(getsockname(second->get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  ASSERT_EQ(at.ss_family, AF_INET);
  EXPECT_EQ(ntohl(reinterpret_cast<const sockaddr_in&>(at).sin_addr.s_addr), 0x7F000002U);
  // The port is free at the others.
  EXPECT_TRUE(tcp::listen_at({"127.0.0.1", port}).has_value());
  EXPECT_TRUE(tcp::names_loopback("127.0.0.2"));
  EXPECT_TRUE(tcp::names_loopback("::1"));
  EXPECT_FALSE(tcp::names_loopback("127.0.0.2.example"));
  EXPECT_FALSE(tcp::names_loopback("10.0.0.1"));
}

TEST(TcpRendezvous, OfRanksAtAnotherLoopback) {
  std::vector<TcpPlace> places = places_of(3);
  for (TcpPlace& place : places) place.address = "127.0.0.2";
  std::vector<Joined> ranks = join_all(places);
  for (const Joined& rank : ranks) EXPECT_EQ(what_of(rank), "joined");
  leave({&ranks[0], &ranks[1], &ranks[2]});
}

// As one that is stopped: nobody else can say who is missing.
TEST(TcpExchange, NamesRank0WhereItDoesNotAnswer) {
  std::vector<Joined> ranks = join_all(places_of(3), {.deadline = milliseconds{2000}});
  ASSERT_EQ(what_of(ranks[1]), "joined");
  std::jthread second([&] {
    const auto all = (*ranks[2])->exchange("two");
    EXPECT_FALSE(all.has_value());
  });
  const auto all = (*ranks[1])->exchange("one");
  ASSERT_FALSE(all.has_value());
  EXPECT_EQ(all.error().code, Errc::retryable);
  EXPECT_THAT(all.error().what, HasSubstr("rank 0 has not arrived at an exchange within 2 s"));
}

TEST(TcpRendezvous, AnotherNumberOfRanksEndsTheRunForAll) {
  std::vector<TcpPlace> places = places_of(3);
  places[2].world = 4;
  const std::vector<Joined> ranks = join_all({places[0], places[2]});
  for (const Joined& rank : ranks) {
    EXPECT_THAT(what_of(rank), HasSubstr("rank 2 was started as one of 4 ranks, rank 0 as one of 3"));
    EXPECT_EQ(rank.error().code, Errc::contradiction);
  }
}

TEST(TcpRendezvous, AnotherPlanEndsTheRunForAll) {
  std::vector<TcpPlace> places = places_of(2);
  places[1].plan = "fedcba";
  for (const Joined& rank : join_all(places)) {
    EXPECT_THAT(what_of(rank), HasSubstr("rank 1 compiled another plan than rank 0"));
    EXPECT_EQ(rank.error().code, Errc::contradiction);
  }
}

TEST(TcpRendezvous, ARankOfAnotherRunIsTurnedAwayAndTheRunGoesOn) {
  std::vector<TcpPlace> places = places_of(2);
  TcpPlace stranger = places[1];
  stranger.job = "job 18";
  Joined strange = Error{};
  std::vector<Joined> ranks;
  std::jthread run([&] { ranks = join_all({places[0]}); });
  strange = make_tcp(stranger, kSoon);
  EXPECT_THAT(what_of(strange), HasSubstr("refuses this rank: rank 1 is of another run"));
  EXPECT_EQ(strange.error().code, Errc::unavailable);
  Joined own = make_tcp(places[1]);
  EXPECT_EQ(what_of(own), "joined");
  run.join();
  EXPECT_EQ(what_of(ranks[0]), "joined");
  leave({&own, &ranks[0]});
}

/// Somebody connects, says something, and goes or stays.
class Stranger {
 public:
  Stranger(std::uint16_t port, const std::string& words) {
    Result<tcp::Socket> socket = tcp::dial({"127.0.0.1", port}, tcp::Clock::now() + milliseconds{2000}, "the port");
    if (!socket) return;
    static_cast<void>(tcp::send_now(*socket, words));
    socket_ = std::move(*socket);
  }

 private:
  tcp::Socket socket_;
};

TEST(TcpRendezvous, WhateverElseComesToThePortDoesNotDisturb) {
  const std::vector<TcpPlace> places = places_of(2);
  std::vector<Joined> first;
  std::jthread run([&] { first = join_all({places[0]}); });
  const Stranger silent(places[0].port, "");
  const Stranger browser(places[0].port, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  const Stranger half(places[0].port, tcp::bytes_of(tcp::Greeting{}).substr(0, 20));
  tcp::Greeting wild{.rank = -7, .world = 1 << 30, .port = 0xFFFFFFFF};
  const Stranger other(places[0].port, tcp::bytes_of(wild));
  wild = {.job = tcp::hash_of("job 17"), .plan = tcp::hash_of("abcdef"), .rank = 2000000000, .world = 2, .port = 1};
  const Stranger no_rank(places[0].port, tcp::bytes_of(wild));
  { const Stranger gone(places[0].port, "x"); }
  std::mt19937 random(1);
  std::vector<Stranger> noise;
  for (int i = 0; i < 20; ++i) {
    std::string words(200, ' ');
    for (char& letter : words) letter = static_cast<char>(random());
    noise.emplace_back(places[0].port, words);
  }
  Joined second = make_tcp(places[1]);
  EXPECT_EQ(what_of(second), "joined");
  run.join();
  EXPECT_EQ(what_of(first[0]), "joined");
  leave({&second, &first[0]});
}

TEST(TcpRendezvous, SaysAtTheDeadlineWhoWasTurnedAway) {
  const TcpPlace place = place_of(0, 2, free_port());
  std::jthread stranger([&] { const Stranger browser(place.port, "GET / HTTP/1.1\r\n\r\n"); });
  const std::vector<Joined> ranks = join_all({place}, kSoon);
  EXPECT_THAT(what_of(ranks[0]), HasSubstr("turned away: 127.0.0.1:"));
}

TEST(TcpRendezvous, ASecondProcessOfARankIsTurnedAway) {
  const std::vector<TcpPlace> places = places_of(3);
  std::vector<Joined> early;
  std::jthread run([&] { early = join_all({places[0], places[1]}); });
  std::this_thread::sleep_for(milliseconds{200});
  const Joined twin = make_tcp(places[1], kSoon);
  EXPECT_THAT(what_of(twin), HasSubstr("another process is rank 1 already"));
  Joined last = make_tcp(places[2]);
  EXPECT_EQ(what_of(last), "joined");
  run.join();
  for (const Joined& rank : early) EXPECT_EQ(what_of(rank), "joined");
  leave({&last, &early[0], &early[1]});
}

TEST(TcpRendezvous, AProgramThatIsNoRankIsNamed) {
  const Result<tcp::Socket> listener = tcp::listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(listener.has_value());
  const std::uint16_t port = tcp::own_port(*listener);
  std::jthread web([&] {
    pollfd there{listener->get(), POLLIN, 0};
    poll(&there, 1, 2000);
    const tcp::Socket caller = tcp::accept_from(*listener);
    static_cast<void>(tcp::send_now(caller, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
    std::this_thread::sleep_for(milliseconds{300});
  });
  const Joined rank = make_tcp(place_of(1, 2, port), {.deadline = milliseconds{2000}});
  EXPECT_THAT(what_of(rank), HasSubstr("is no rank of this program"));
  EXPECT_EQ(rank.error().code, Errc::unavailable);
}

CollectiveRequest gather(std::span<const CommSegment> segments, int op = 17) {
  return {.op = OpId{op}, .kind = Collective::all_gather, .segments = segments};
}

/// Three ranks with arenas, that one thread turns.
class TcpFaults : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<TcpPlace> places = places_of(3);
    ranks_.resize(3);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        Joined joined = make_tcp(places[i], kSoon);
        ASSERT_TRUE(joined.has_value()) << to_string(joined.error());
        ASSERT_TRUE((*joined)->make_arena(Bytes{4096}).has_value());
        ranks_[i] = std::move(*joined);
      });
  }
  void TearDown() override {
    std::vector<std::jthread> threads;  // those that are well wait for each other
    for (auto& rank : ranks_) threads.emplace_back([&rank] { rank.reset(); });
  }

  const std::vector<CommSegment> segments_{{0, 1024, Elems{12}}};
  std::vector<std::unique_ptr<Communicator>> ranks_;
};

TEST_F(TcpFaults, DeadlineNamesTheRanksThatHaveNotArrived) {
  const Result<Ticket> ticket = ranks_[0]->start(gather(segments_));
  ASSERT_TRUE(ticket.has_value());
  const Result<void> done = ranks_[0]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Errc::retryable);
  EXPECT_EQ(done.error().what, "ranks 1, 2 have not arrived within 0.5 s");
  EXPECT_EQ(done.error().where, "rank 0 all_gather op 17");
}

TEST_F(TcpFaults, AbortEndsTheWaitsOfAllOthers) {
  const Result<Ticket> ticket = ranks_[1]->start(gather(segments_));
  ASSERT_TRUE(ticket.has_value());
  ranks_[2]->abort("data.bin:7: token 300 is not in the vocabulary");
  const Result<void> done = ranks_[1]->wait(*ticket);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().what, "rank 2 stopped: data.bin:7: token 300 is not in the vocabulary");
}

TEST_F(TcpFaults, AnotherThreadLearnsWhoAborted) {
  EXPECT_FALSE(ranks_[0]->lost_peer().has_value());
  ranks_[1]->abort("disk full");
  std::optional<Error> lost;
  std::jthread other([&] {
    for (int look = 0; look < 100 && !lost; ++look) {
      lost = ranks_[0]->lost_peer();
      std::this_thread::sleep_for(milliseconds{5});
    }
  });
  other.join();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->what, "rank 1 stopped: disk full");
}

TEST_F(TcpFaults, AnExchangeThatOneRankMissesNamesIt) {
  std::vector<Result<std::vector<std::string>>> said(3, Error{});
  {
    std::jthread first([&] { said[0] = ranks_[0]->exchange("x"); });
    std::jthread second([&] { said[1] = ranks_[1]->exchange("y"); });
  }
  ASSERT_FALSE(said[0].has_value());
  EXPECT_EQ(said[0].error().what, "rank 2 has not arrived at an exchange within 0.5 s");
  EXPECT_FALSE(said[1].has_value());
}

/// What `words` of a peer come to, at a port that has one receive of 8 bytes posted.
std::optional<Error> after(const std::string& words) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  std::vector<tcp::Socket> connections(2);
  connections[1] = tcp::Socket(ends[0]);
  const tcp::Socket other(ends[1]);
  const std::unique_ptr<MessagePort> port = tcp::make_port(Rank{0}, std::move(connections));
  std::array<std::byte, 8> place{};
  static_cast<void>(port->receive(Rank{1}, 5, place.data(), 8));
  EXPECT_TRUE(tcp::send_now(other, words));
  for (int turn = 0; turn < 3; ++turn) static_cast<void>(port->progress());
  return port->news();
}

std::string head(std::uint32_t kind, std::int64_t bytes, std::int32_t tag) {
  tcp::FrameHead head;
  head.kind = kind;
  head.bytes = bytes;
  head.tag = tag;
  return {reinterpret_cast<const char*>(&head), sizeof head};
}

TEST(TcpPort, WhatDoesNotFitIsThePeersEnd) {
  using tcp::FrameHead;
  EXPECT_FALSE(after(head(FrameHead::data, 8, 5) + "12345678").has_value());
  const auto says = [](const std::string& words) {
    const std::optional<Error> news = after(words);
    return news ? news->what : "nothing";
  };
  EXPECT_EQ(says(head(FrameHead::data, 9, 5) + "123456789"), "rank 1 sends what nobody awaits");
  EXPECT_EQ(says(head(FrameHead::data, 8, 6)), "rank 1 sends what nobody awaits");
  EXPECT_EQ(says(head(FrameHead::data, 8, 5) + "12345678" + head(FrameHead::data, 8, 5)),
            "rank 1 sends what nobody awaits");
  EXPECT_EQ(says(head(FrameHead::abort, 1LL << 40, 0)), "rank 1 says what is no word of this program");
  EXPECT_EQ(says(head(FrameHead::text, -1, 0)), "rank 1 says what is no word of this program");
  EXPECT_EQ(says(head(99, 0, 0)), "rank 1 says what is no word of this program");
  EXPECT_EQ(says(head(FrameHead::table, 0, 0)), "rank 1 speaks out of turn");
  EXPECT_EQ(says("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "rank 1 says what is no word of this program");
  EXPECT_EQ(says(tcp::frame(FrameHead::bye, {}) + "x"), "nothing");
}

TEST(TcpWire, ATableIsReadBackAndNothingElseIs) {
  const std::vector<tcp::Endpoint> ranks{{}, {"10.0.0.1", 17}, {"", 65535}};
  const std::string text = tcp::write_table(ranks);
  EXPECT_EQ(text, "1 10.0.0.1 17\n2 * 65535\n");
  const auto read = tcp::read_table(text, 3);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ((*read)[1].address, "10.0.0.1");
  EXPECT_EQ((*read)[2].address, "");
  EXPECT_EQ((*read)[2].port, 65535);
  for (const char* bad : {"", "1 a 1\n", "2 a 1\n1 a 1\n", "1 a -1\n2 a 1\n", "1 a 1\n2 a 65536\n", "1 a 1\n2  1\n",
                          "1 a 1\n2 a 1\n3 a 1\n", "1 a 1\n2 a 1"})
    EXPECT_FALSE(tcp::read_table(bad, 3).has_value()) << bad;
}

}  // namespace
}  // namespace shard::test

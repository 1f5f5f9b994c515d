// Runs programs as a user would.
#include "tests/end_to_end/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace shard::test {
namespace {

namespace fs = std::filesystem;

Words environment_of(const Surroundings& place) {
  std::map<std::string, std::string> variables{{"LC_ALL", "C.UTF-8"}};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && !text.starts_with("LC_ALL="))
      variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : place.environment) variables[name] = value;
  Words lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Program::Program(const Words& command, const Surroundings& place) {
  Words words = command;
  Words variables = environment_of(place);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) {
    ADD_FAILURE() << "no pipe";
    return;
  }
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    if (!place.directory.empty() && chdir(place.directory.c_str()) != 0) _exit(126);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Program::~Program() {
  if (process_ > 0) {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  for (const int descriptor : {out_, err_})
    if (descriptor >= 0) close(descriptor);
}

bool Program::read_some() {
  std::array<pollfd, 2> ready{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (out_ < 0 && err_ < 0) return false;
  while (poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (ready[i].fd < 0 || ready[i].revents == 0) continue;
    std::array<char, 65536> buffer{};
    const ssize_t count = read(ready[i].fd, buffer.data(), buffer.size());
    int& own = i == 0 ? out_ : err_;
    if (count > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(buffer.data(), static_cast<std::size_t>(count));
    } else {
      close(own);
      own = -1;
    }
  }
  return true;
}

bool Program::read_line(const std::string& beginning) {
  const auto found = [&] {
    return outcome_.out.starts_with(beginning) || outcome_.out.find("\n" + beginning) != std::string::npos;
  };
  while (!found() && out_ >= 0) read_some();
  return found();
}

Outcome Program::wait() {
  while (read_some()) {
  }
  int status = 0;
  if (process_ > 0 && waitpid(process_, &status, 0) == process_) {
    process_ = -1;
    if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  }
  return outcome_;
}

Outcome run(const Words& command, const Surroundings& place) {
  return Program(command, place).wait();
}

std::string programs_directory() {
  return PROGRAMS;
}

std::string shardscope_path() {
  return programs_directory() + "/shardscope";
}

Surroundings under_mpirun_here() {
  return {.environment = {{"HWLOC_COMPONENTS", "-pci,-gl"},
                          {"OMPI_MCA_plm", "isolated"},
                          {"OMPI_MCA_pml", "ob1"},
                          {"OMPI_MCA_btl", "self,vader"},
                          {"OMPI_MCA_mtl", "^ofi,psm,psm2"},
                          {"OMPI_MCA_io", "^ompio,romio321"},
                          {"OMPI_MCA_mpi_yield_when_idle", "1"},
                          {"OMPI_MCA_odls_base_sigkill_timeout", "0"}}};
}

Outcome shardscope(const Words& arguments, const Surroundings& place) {
  Words command{shardscope_path()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, place);
}

nlohmann::json json_of(const Outcome& outcome, int exit_code) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  const nlohmann::json j = nlohmann::json::parse(outcome.out, nullptr, false);
  if (j.is_object()) return j;
  ADD_FAILURE() << "stdout is not one JSON object: " << outcome.out.substr(0, 400);
  return nlohmann::json::object();
}

ScratchDirectory::ScratchDirectory(const fs::path& in) {
  std::string name = (in / "shardscope-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no directory " << name;
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchDirectory::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
  return file(name);
}

Words ScratchDirectory::list() const {
  Words names;
  for (const auto& entry : fs::recursive_directory_iterator(path_))
    names.push_back(entry.path().lexically_relative(path_).string());
  std::ranges::sort(names);
  return names;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<pid_t> processes_with(const std::string& variable) {
  const std::string mark = '\0' + variable + '\0';
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (('\0' + read_file(entry.path() / "environ")).find(mark) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace shard::test

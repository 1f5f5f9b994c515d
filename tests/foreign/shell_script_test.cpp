// Is a launch script read as a shell would run it, as far as that goes without running a command?
#include "sim/foreign/shell_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shard::foreign {
namespace {

using ::testing::StartsWith;

/// The words of every command, "|" between them, commands on lines; what is missing in <>.
std::string words_of(std::string_view source) {
  const Result<ShellScript> script = read_shell(source, "run.sh");
  if (!script) return to_string(script.error());
  std::string text;
  for (const ShellCommand& command : script->commands) {
    if (!text.empty()) text += '\n';
    for (const auto& [name, value] : command.environment) text += name + "=" + value.text + " ";
    for (const ShellWord& word : command.words) {
      if (&word != command.words.data()) text += '|';
      text += word.missing.empty() ? word.text : "<" + word.text + ">";
    }
  }
  return text;
}

TEST(ShellScript, WordsQuotesAndContinuations) {
  EXPECT_EQ(words_of("run a 'b c' \"d  e\" f\\ g \\\n  h # i\n"), "run|a|b c|d  e|f g|h");
  EXPECT_EQ(words_of("A=1; B='x y'\nrun $A ${B} \"${B}\" $A$A --n=$A \"\"\n"), "run|1|x|y|x y|11|--n=1|");
  EXPECT_EQ(words_of("ARGS=\" \\\n --a 1 \\\n --b 2\"\nrun $ARGS \"$ARGS\"\n"), "run|--a|1|--b|2|  --a 1  --b 2");
  EXPECT_EQ(words_of("X=5 Y=$X run --z\n"), "X=5 Y=$X run|--z");
}

TEST(ShellScript, DefaultsListsAndArithmetic) {
  EXPECT_EQ(words_of("run ${N:-8} ${M-4} ${N:+x} ${K:=3} $K\nN=2\nrun ${N:-8} ${N:+x}\n"), "run|8|4|3|3\nrun|2|x");
  EXPECT_EQ(words_of("L=(--a 1 \"--b c\")\nL+=(--d)\nrun ${L[@]}\nrun \"${L[@]}\" ${L[1]}\n"),
            "run|--a|1|--b|c|--d\nrun|--a|1|--b c|--d|1");
  EXPECT_EQ(words_of("G=8; N=4\nrun $(($G*$N)) $((G * N / 2 + 1)) $(( ${G} ** 2 )) $((1/0))\n"),
            "run|32|17|64|<$((1/0))>");
}

TEST(ShellScript, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(words_of("D=$(date +%Y)\nrun --save /x/$D --load $HOME \"${VOCAB_PATH}\"\n"),
            "run|--save|</x/$(date +%Y)>|--load|<$HOME>|<${VOCAB_PATH}>");
  EXPECT_EQ(words_of("A=\"--x 1\"\nrun $(echo ${A})\n"), "run|--x|1");
}

TEST(ShellScript, ConditionsLoopsAndFunctions) {
  EXPECT_EQ(words_of("Z=3\nif [ $Z -gt 2 ]; then A=y; elif true; then A=z; else A=n; fi\nrun $A\n"), "run|y");
  EXPECT_EQ(
      words_of("N=1\nif [ -n \"${2}\" ]; then N=$2; fi\nif [[ \"a\" = \"b\" || -z \"$N\" ]]; then N=9; fi\nrun $N\n"),
      "run|1");
  EXPECT_EQ(words_of("if [ ! -f x ]; then A=1; fi\n[ -d y ] && A=2\n[ -d y ] || B=3\nrun $A $B\n"), "run|1|3");
  EXPECT_EQ(words_of("for P in a b; do\n for N in 1 2\n do run $P $N; done\ndone\nwhile read x; do no; done < f\n"),
            "run|a|1");
  EXPECT_EQ(words_of("case $S in big) N=8;; *) N=1;; esac\nM=x\ncase \"$M\" in y) N=2 ;; x|z) N=3 ;; esac\nrun $N\n"),
            "run|3");
  EXPECT_EQ(words_of("go() {\n  local n=$1\n  run --n $n \"$@\"\n}\nfunction other { no; }\ngo 4 5\n"),
            "run|--n|4|4|5");
}

TEST(ShellScript, CommandsWithinCommands) {
  EXPECT_EQ(words_of("C='run --a 1'\neval $C\n"), "run|--a|1");
  EXPECT_EQ(words_of("bash -c \"run $X\"\n"), "run|<$X>");
  EXPECT_EQ(words_of("srun --x bash -c 'python t.py --b 2' 2>&1 | tee log\n"),
            "srun|--x|bash|-c|python t.py --b 2\npython|t.py|--b|2\ntee|log");
  EXPECT_EQ(words_of("(trap 'kill 0' INT; run --a & \\\nrun --b & wait)\n"), "trap|kill 0|INT\nrun|--a\nrun|--b\nwait");
  EXPECT_EQ(words_of("cat <<EOT > $F\n{ \"a\": 'b }\nEOT\nrun\n"), "cat\nrun");
}

TEST(ShellScript, SbatchSaysHowManyNodes) {
  EXPECT_EQ(
      words_of("#!/bin/bash\n#SBATCH --nodes=16   # many\n#SBATCH --gres=gpu:8\nN=$SLURM_NNODES\nrun $((8*$N))\n"),
      "run|128");
}

TEST(ShellScript, WhatIsNeverClosedNamesItsLine) {
  EXPECT_THAT(words_of("run\nrun 'a\n"), StartsWith("run.sh:2: a quote ' is never close"));
  EXPECT_THAT(words_of("run \"a\n"), StartsWith("run.sh:1: a quote \" is never clos"));
  EXPECT_THAT(words_of("A=$(date\n"), StartsWith("run.sh:1: $( is never closed"));
  EXPECT_THAT(words_of("A=${B\n"), StartsWith("run.sh:1: ${ is never closed"));
  EXPECT_THAT(words_of("A=(1 2\n"), StartsWith("run.sh:1: the list of A is never close"));
  EXPECT_THAT(words_of("if true; then\nrun\n"), StartsWith("run.sh:1: 'if' is never closed with 'fi'"));
  EXPECT_EQ(words_of("for i in 1; do run\n").substr(0, 43), "run.sh:1: a loop is never closed with 'done");
  EXPECT_THAT(words_of("case x in\n"), StartsWith("run.sh:1: 'case' is never closed with 'esac"));
  EXPECT_THAT(words_of("f() { run\n"), StartsWith("run.sh:1: '{' is never closed with '}'\n"));
  EXPECT_EQ(words_of("run; fi\n").substr(0, 33), "run.sh:1: 'fi' closes nothing\n  t");
  EXPECT_THAT(words_of("cat <<E\nx\n"), StartsWith("run.sh:2: the here-document of E is never close"));
}

// Each of these would take a careless reader for ever or all memory.
TEST(ShellScript, BombsAreRefusedAtOnce) {
  std::string doubling = "a=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 64; ++i) doubling += "a=$a$a\n";
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += "${a:=";
  std::string lists;
  for (int i = 0; i < 10'000; ++i) lists += "a=(";
  std::string blocks;
  for (int i = 0; i < 10'000; ++i) blocks += "if true; then ";
  std::string functions, bare;
  for (int i = 0; i < 100'000; ++i) functions += "a(){ ", bare += "a()";
  EXPECT_THAT(words_of(functions), StartsWith("run.sh:1: blocks are nested deeper than 48\n"));
  EXPECT_THAT(words_of(bare), StartsWith("run.sh:1: functions are nested deeper than 48\n"));
  const std::string shells = "f() { eval \"f; f\"; }\n f\n a='eval $a'\neval $a\n";
  for (const std::string& each : {doubling, nested, lists, blocks}) {
    const Result<ShellScript> script = read_shell(each, "bomb.sh");
    EXPECT_FALSE(script);
    EXPECT_TRUE(script || script.error().code == Errc::malformed);
  }
  static_cast<void>(read_shell(shells, "bomb.sh"));
  static_cast<void>(read_shell(std::string(500'000, '('), "bomb.sh"));
  static_cast<void>(read_shell("a=$((" + std::string(100'000, '-') + "1))\n", "bomb.sh"));
  EXPECT_FALSE(read_shell(std::string((1 << 20) + 1, ' '), "big.sh"));
}

}  // namespace
}  // namespace shard::foreign

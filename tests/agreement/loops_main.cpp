// Prints the digests of loops.h: of loops that this build compiled for one instruction set.
#include "tests/agreement/loops.h"

#include <cstdio>

int main() {
  for (const auto& [name, digest] : shard::loop_digests()) std::printf("%s: %s\n", name.c_str(), digest.c_str());
}

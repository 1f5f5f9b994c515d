# Script: writes OUTPUT, the C++ source of example_models(), from FILES (a list of paths, separated by "|").
string(REPLACE "|" ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WLE)
  file(READ "${file}" text)
  string(APPEND entries "    {\"${name}\", R\"json(${text})json\"},\n")
endforeach()
list(LENGTH files count)
file(WRITE "${OUTPUT}" "// The files of examples/models/, embedded by sim/model/embed_examples.cmake.
#include <array>

#include \"sim/model/examples.h\"

namespace shard::model {

std::span<const ExampleModel> example_models() {
  static constexpr std::array<ExampleModel, ${count}> kExamples{{
${entries}  }};
  return kExamples;
}

}  // namespace shard::model
")

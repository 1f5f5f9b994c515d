// The table of words.
#include "sim/cli/words.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shard::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 6;

constexpr auto kWords = std::to_array<Word>({
    {"activation", "memory that forward fills and backward reads"},
    {"all_gather", "collective after which every rank has the parts of all"},
    {"all_reduce", "collective after which every rank has the sum over all ranks"},
    {"arena",
     "the one block of each memory that a run sets aside before its first step; every buffer has a fixed place "
     "in it, so its size is the peak"},
    {"broadcast", "collective that gives every rank what one rank has"},
    {"busy", "of a device: a kernel, a collective or a copy runs; where several do, the moment counts once"},
    {"checkpoint", "parameters and optimizer state as they stand behind a step, kept for going on; whole or none"},
    {"chunk",
     "a fixed number of elements that parameters are laid into one after the other, across their borders; "
     "gathered, reduced and moved as one",
     "chunks"},
    {"chunk elements", "how many elements a chunk has; times the bytes of a stored element, the chunk size",
     "chunk size, size"},
    {"collective", "an exchange of data in which several ranks take part", "calls, collectives"},
    {"communication", "as memory: staging of what ranks exchange; as time: while any collective runs"},
    {"compute", "the stream of arithmetic; as a share, the part of a step in which a rank calculates", "computes"},
    {"copy", "bytes moved between memories or within one, or a memory filled with one value", "copies"},
    {"copy_in", "the stream of copies from host memory to the device", "host to device"},
    {"copy_out", "the stream of copies from the device to host memory", "device to host"},
    {"count", "how often: spans of a trace, calls"},
    {"creation", "the phase before the first step: parameters are made and set to their first values"},
    {"device", "the memory of the processor that trains: a GPU's own, or what one CPU rank uses", "device memory"},
    {"digest",
     "the phase after the last step in which the ranks compute one SHA-256 of all parameters and optimizer "
     "state, equal for equal training; also that number"},
    {"disk", "memory on a disk, for optimizer state"},
    {"evaluate", "the phase that computes the mean loss of validation data, by the forward ops of a step"},
    {"exposed", "communication while nothing computes: what it adds to the step"},
    {"extent", "how far an arena is used: its highest offset, gaps and alignment included; what has to fit",
     "peak (extent)"},
    {"first_step", "the first step, at whose end optimizer state is born"},
    {"gather set",
     "the gathered elements of all chunks that one module touches, of the module where they are most: they have to be "
     "there at one time",
     "gather working set"},
    {"gathered", "full parameters put together from the shards of all ranks, for as long as they are used"},
    {"gradient", "gradients of parameters, whole or a rank's shard"},
    {"headroom", "capacity less peak and the most that lies outside: negative where it is tight or does not fit"},
    {"hidden", "communication while a kernel runs on the same device: what it does not add to the step"},
    {"host", "memory of the host's processor; with --placement, where a device's overflow rests", "host memory"},
    {"idle",
     "of a device: neither a kernel nor a collective nor a copy runs; between first and last: without what lies before "
     "its "
     "first work and after its last",
     "between first and last"},
    {"input", "batch, targets, losses and the few numbers that steps read"},
    {"kernel", "a program that a device runs"},
    {"lane", "one row of a trace: a stream of one rank, or a thread", "lanes"},
    {"largest", "the category that most of a device's memory is of when most is in use, with its bytes"},
    {"live", "the sum of all buffers in use at one moment, without gaps"},
    {"live peak", "the largest sum of buffers in use at one time; the peak is larger by the gaps between them"},
    {"load", "reading the state of a checkpoint: what creation and the first step do in a run that is resumed"},
    {"master_parameter", "fp32 copy of parameters that are stored in 16 bits; the optimizer steps it", "masters"},
    {"max allocated",
     "PyTorch's own figures: the most bytes that its allocator had given out, and had taken from the "
     "device, at one time",
     "max reserved, reserved"},
    {"micro-batch", "what one rank computes in one forward and backward; several may make a step (accumulation)",
     "micro-step"},
    {"moment", "the state of memory after a part of the run: creation, forward, backward, step",
     "forward, backward, step"},
    {"not_known", "of a recording of another program, which does not say what its memory is for"},
    {"op", "one entry of the plan: compute an operator, gather a unit, move or step it"},
    {"optimizer", "the stream in which parameters are stepped where their state rests"},
    {"optimizer_state", "what the optimizer keeps from step to step: Adam's two moments"},
    {"outside of the allocator",
     "what a process takes of a GPU beside tensors: CUDA's context with the kernels that were loaded, and the buffers "
     "of "
     "NCCL; known as an interval",
     "outside"},
    {"parameter", "resting parameters, whole or a rank's shard; as a count, tensors by their names", "parameters"},
    {"pareto front", "of a sweep, marked *: strategies that no other one beats in both peak device memory and speed",
     "front"},
    {"peak", "the most that a memory is used; of an arena its extent", "peak memory"},
    {"phase",
     "a part of a run with memory and time of its own: creation, first_step, steady_step, digest, save,"
     " evaluate"},
    {"pinned", "host memory whose pages are locked, so that a GPU copies from and to it while it computes",
     "pinned memory"},
    {"placement", "in which memory model data rests between its uses"},
    {"plan", "the list of ops of each class of equal ranks, which simulator and executor both run; its hash names it"},
    {"rank", "one process of a run, with a device of its own", "ranks"},
    {"ratio", "measured over predicted"},
    {"recorded", "of a rank: from the first begin to the last end in a trace"},
    {"reduce", "collective after which one rank has the sum over all ranks"},
    {"reduce_scatter", "collective that sums over all ranks and leaves each its part of the sum"},
    {"reported waste",
     "the waste that Colossal-AI's own search reports for the size; it differs from the waste of the layout built "
     "where "
     "that search leaves parameters out or rounds later"},
    {"resident", "memory of all ranks as the operating system counts it, less what the libraries took before"},
    {"residual", "measured less predicted, of one op"},
    {"rule",
     "how a chunk size is chosen: exact by Shardscope, gemini and gemini-v0.1.9 as Colossal-AI's searches, "
     "variable with chunks of different sizes"},
    {"save", "the phase in which each rank hands out its part of the state, to be kept as a checkpoint"},
    {"self", "the time of a call less that of the calls inside it, on one thread", "self time"},
    {"sent",
     "bytes of the collectives of one rank in one step, each call's full buffer; an all_reduce counts as the "
     "reduce_scatter and the all_gather that it is on the wire; in JSON and CSV each buffer once"},
    {"shard", "a rank's part of something that is cut equally over ranks"},
    {"share", "a part of the whole: of the time recorded, of all of a table"},
    {"span", "one event with a beginning and an end in a trace", "spans"},
    {"stage", "ZeRO stage: 0 shards nothing, 1 optimizer state, 2 gradients too, 3 parameters too",
     "zero, zero-0, zero-1, zero-2, zero-3"},
    {"state", "all parameters and optimizer state after the last step; its SHA-256 is equal for equal training"},
    {"steady_step", "any step after the first"},
    {"stream", "a queue of ops that run in order; different streams overlap"},
    {"tight", "fits, if what lies outside of the allocator is less than the most that was seen of it"},
    {"time", "from begin to end, summed over what a row counts", "takes"},
    {"unit", "what is gathered, released and reduced together: a tensor, a bucket, a module or a chunk"},
    {"waste", "padding: elements of chunks that hold no parameter", "waste elements"},
    {"workspace", "memory that lives within one pass: temporaries, gradients of activations"},
});

std::string folded_word(std::string_view word) {
  std::string text;
  for (const char c : word)
    if (c != '-' && c != '_' && c != ' ') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Lines of at most kWidth columns, the second and further indented.
std::string wrapped(const std::string& text) {
  std::string result;
  std::string rest = text;
  while (rest.size() > kWidth) {
    const std::size_t at = rest.rfind(' ', kWidth);
    result += rest.substr(0, at) + "\n";
    rest = std::string(kIndent, ' ') + rest.substr(at + 1);
  }
  return result + rest + "\n";
}

}  // namespace

std::span<const Word> known_words() {
  return kWords;
}

const Word* find_word(std::string_view word) {
  const std::string wanted = folded_word(word);
  const auto by_name = std::ranges::find_if(kWords, [&](const Word& each) { return folded_word(each.name) == wanted; });
  if (by_name != kWords.end()) return &*by_name;
  for (const Word& each : kWords) {
    std::string_view rest = each.also;
    while (!rest.empty()) {
      const std::size_t end = rest.find(", ");
      if (folded_word(rest.substr(0, end)) == wanted) return &each;
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
    }
  }
  return nullptr;
}

std::string explained(const Word& word) {
  return wrapped("  " + std::string(word.name) + (word.also.empty() ? "" : " (" + std::string(word.also) + ")") + ": " +
                 std::string(word.meaning));
}

std::string words_help() {
  std::string text = "What the words in outputs mean:\n\n";
  for (const Word& word : kWords) text += explained(word);
  return text;
}

}  // namespace shard::cli

// cuDNN's recurrent nets: where weights stand in their buffer, which PyTorch's parameters are views of, and the memory
// that a training pass keeps for its backward pass. The latter is an estimate: what the real one keeps is not
// published.
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "profiler/standin/counters.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

// cudnnRNNMode_t, cudnnDirectionMode_t, cudnnRNNBiasMode_t, cudnnForwardMode_t (cudnn_adv.h).
constexpr int kLstm = 2, kGru = 3, kBothWays = 1, kNoBias = 0, kTwoBiases = 2, kTraining = 1;

/// A tensor's, a net's or a sequence's descriptor: what was said of it.
struct Matrix {
  int type = 0;
  std::size_t rows = 0, columns = 0;
};
struct Net {
  int mode = 0, bias = kTwoBiases, type = 0;
  std::size_t directions = 1, input = 0, hidden = 0, projected = 0, layers = 1;

  /// Linear maps of the input; as many of the hidden state.
  [[nodiscard]] std::size_t gates() const { return mode == kLstm ? 4 : mode == kGru ? 3 : 1; }
  [[nodiscard]] std::size_t out() const { return projected != 0 ? projected : hidden; }
  [[nodiscard]] bool has_projection() const { return projected != 0 && projected != hidden; }
  [[nodiscard]] std::size_t columns_of(std::size_t layer) const {
    return layer < directions ? input : directions * out();
  }
  /// Of a pseudo-layer, one direction of a layer.
  [[nodiscard]] std::size_t weights(std::size_t layer) const {
    return gates() * hidden * (columns_of(layer) + out()) + (has_projection() ? out() * hidden : 0);
  }
  [[nodiscard]] std::size_t biases() const {
    return bias == kNoBias ? 0 : gates() * hidden * (bias == kTwoBiases ? 2 : 1);
  }
  [[nodiscard]] std::size_t weights_before(std::size_t layer) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < layer; ++i) sum += weights(i);
    return sum;
  }
};
struct Sequences {
  std::size_t length = 0, batch = 0;
};

std::mutex mutex;
template <class T>
T& of(const void* descriptor) {
  static auto* const all = new std::unordered_map<const void*, T>;
  return (*all)[descriptor];
}

/// A part of the weights: from an element on.
struct Piece {
  std::size_t first = 0, rows = 0, columns = 0;
};

/// The matrices of a pseudo-layer: those of its input, those of its hidden state, the projection.
Piece matrix_of(const Net& net, std::size_t layer, std::size_t which) {
  const std::size_t gates = net.gates(), columns = net.columns_of(layer), begin = net.weights_before(layer);
  const std::size_t of_state = begin + gates * net.hidden * columns;
  if (which < gates) return {.first = begin + which * net.hidden * columns, .rows = net.hidden, .columns = columns};
  if (which < 2 * gates)
    return {.first = of_state + (which - gates) * net.hidden * net.out(), .rows = net.hidden, .columns = net.out()};
  if (!net.has_projection()) return {};
  return {.first = of_state + gates * net.hidden * net.out(), .rows = net.out(), .columns = net.hidden};
}

Piece bias_of(const Net& net, std::size_t layer, std::size_t which) {
  if (which * net.hidden >= net.biases()) return {};
  const std::size_t begin = net.weights_before(net.layers * net.directions);
  return {.first = begin + layer * net.biases() + which * net.hidden, .rows = net.hidden, .columns = 1};
}

std::size_t size(int count) {
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

/// Of cudnnDataType_t: float, double, half, bfloat16.
std::size_t bytes_of(int type) {
  return type == 1 ? 8 : type == 2 || type == 9 ? 2 : 4;
}

int hand_out(void** descriptor) {
  *descriptor = fresh_handle();
  return kSuccess;
}

}  // namespace

STANDIN int cudnnCreateTensorDescriptor(void** descriptor) {
  return hand_out(descriptor);
}
STANDIN int cudnnCreateRNNDescriptor(void** descriptor) {
  return hand_out(descriptor);
}
STANDIN int cudnnCreateRNNDataDescriptor(void** descriptor) {
  return hand_out(descriptor);
}

STANDIN int cudnnSetRNNDescriptor_v8(void* descriptor, int, int mode, int bias, int direction, int, int type, int, int,
                                     std::int32_t input, std::int32_t hidden, std::int32_t projected,
                                     std::int32_t layers, void*, std::uint32_t) {
  const std::lock_guard lock(mutex);
  of<Net>(descriptor) = {.mode = mode,
                         .bias = bias,
                         .type = type,
                         .directions = direction == kBothWays ? std::size_t{2} : std::size_t{1},
                         .input = size(input),
                         .hidden = size(hidden),
                         .projected = size(projected),
                         .layers = size(layers)};
  return kSuccess;
}
STANDIN int cudnnSetRNNDataDescriptor(void* descriptor, int, int, int length, int batch, int, const int*, void*) {
  const std::lock_guard lock(mutex);
  of<Sequences>(descriptor) = {.length = size(length), .batch = size(batch)};
  return kSuccess;
}

STANDIN int cudnnGetRNNWeightSpaceSize(void*, void* descriptor, std::size_t* bytes) {
  const std::lock_guard lock(mutex);
  const Net& net = of<Net>(descriptor);
  const std::size_t all = net.layers * net.directions;
  *bytes = (net.weights_before(all) + all * net.biases()) * bytes_of(net.type);
  return kSuccess;
}
/// All matrices, layer by layer, then all biases. Whoever asks for one of both has no place for the other.
STANDIN int cudnnGetRNNWeightParams(void*, void* descriptor, std::int32_t pseudo_layer, std::size_t,
                                    const void* weights, std::int32_t linear, void* matrix, void** matrix_at,
                                    void* bias, void** bias_at) {
  const std::lock_guard lock(mutex);
  const Net& net = of<Net>(descriptor);
  const std::size_t layer = size(pseudo_layer), which = size(linear);
  const auto answer = [&](void* to, void** at, const Piece& piece) {
    of<Matrix>(to) = {.type = net.type, .rows = piece.rows, .columns = piece.columns};
    char* const begin = const_cast<char*>(static_cast<const char*>(weights));
    if (at != nullptr) *at = piece.rows == 0 ? nullptr : begin + piece.first * bytes_of(net.type);
  };
  answer(matrix, matrix_at, matrix_of(net, layer, which));
  answer(bias, bias_at, bias_of(net, layer, which));
  return kSuccess;
}
STANDIN int cudnnGetTensorNdDescriptor(const void* descriptor, int, int* type, int* count, int* sizes, int* strides) {
  const std::lock_guard lock(mutex);
  const Matrix& matrix = of<Matrix>(descriptor);
  const int rows = static_cast<int>(matrix.rows), columns = static_cast<int>(matrix.columns);
  *type = matrix.type;
  *count = 3;
  sizes[0] = 1, sizes[1] = rows, sizes[2] = columns;
  strides[0] = rows * columns, strides[1] = columns, strides[2] = 1;
  return kSuccess;
}

/// Kept for backward: of every step and layer the gates, the cell's state and the output.
STANDIN int cudnnGetRNNTempSpaceSizes(void*, void* descriptor, int forward, void* sequences, std::size_t* work,
                                      std::size_t* reserve) {
  const std::lock_guard lock(mutex);
  const Net& net = of<Net>(descriptor);
  const Sequences& input = of<Sequences>(sequences);
  const std::size_t states = net.gates() + (net.mode == kLstm ? 2 : 1);
  const std::size_t layer = input.length * input.batch * net.directions * net.hidden * bytes_of(net.type);
  if (reserve != nullptr) *reserve = forward == kTraining ? net.layers * states * layer : 0;
  count_unknown_workspace(Library::cudnn);
  if (work != nullptr) *work = net.gates() * layer;
  return kSuccess;
}

// What is known of how long kernels and collectives take on a card: the parameters of sim/cost/laws, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/base/word.h"

namespace shard::cluster {

/// Of matrix products in 16 bits (sim/cost/laws/product.h). Shares are of the data sheet's figures.
struct ProductLaw {
  double peak_share = 0;       ///< reached by whole waves of large tiles with a long k
  double ramp = 0;             ///< elements of k by which every tile is longer: its beginning and end
  double tile_traffic = 0;     ///< how much slower small tiles are, which read more for each product
  double quantised_share = 0;  ///< of waves that count whole; the rest as far as they are full
  Seconds floor;               ///< of any product
  double bandwidth_share = 0;  ///< of memory, where that decides
};

/// Who wrote the kernel of attention that a run takes.
enum class AttentionKernel : std::uint8_t {
  flash_1,  ///< FlashAttention before version 2
  flash_2,  ///< PyTorch's own since 2.2
  newest,   ///< FlashAttention 3 or 4, or cuDNN's
};
[[nodiscard]] constexpr Word word(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::flash_1: return {"flash_1"};
    case AttentionKernel::flash_2: return {"flash_2"};
    case AttentionKernel::newest: return {"newest"};
  }
  return {};
}

/// Of causal attention in 16 bits (sim/cost/laws/attention.h); ramps in tokens.
struct AttentionLaw {
  AttentionKernel kernel = AttentionKernel::flash_2;
  double forward_share = 0, forward_ramp = 0;
  double backward_share = 0, backward_ramp = 0;
};

/// Of kernels whose time is memory's (sim/cost/laws/moved.h).
struct MovedLaw {
  Seconds floor;               ///< of any kernel
  double share = 0;            ///< of memory's bandwidth: element by element
  double reduction_share = 0;  ///< norms, softmax, sums
};

/// One protocol of NCCL: its bytes wait for `base` and `per_rank` times the other ranks.
struct NcclProtocol {
  Seconds base, per_rank;
  BytesPerSecond bandwidth;  ///< of the bus
};

/// Inside of a host; NCCL takes the fastest (sim/cost/laws/exchange.h).
struct ExchangeLaw {
  std::vector<NcclProtocol> gather;      ///< all-gather, reduce-scatter
  std::vector<NcclProtocol> all_reduce;  ///< of four ranks and more with what the switch adds up
};

struct KernelLaws {
  std::string source;
  bool measured = true;    ///< false: of the data sheet and the nearest card; intervals are wider
  double clock_share = 1;  ///< of the clocks under which the laws were measured: a lower power limit
  ProductLaw product;      ///< of single kernels on a cool card
  std::optional<ProductLaw> sustained_product;  ///< of a second or more at the power limit; none: not known
  std::vector<AttentionLaw> attention;
  MovedLaw moved;
  ExchangeLaw exchange;
  double spread = 0;  ///< by which machines of this card differ from one another, relative

  /// What a training step meets.
  [[nodiscard]] const ProductLaw& sustained() const { return sustained_product ? *sustained_product : product; }
};

}  // namespace shard::cluster
